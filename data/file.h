// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/file_access.h"
#include "core/base/status.h"

// Files, wherever they are, behind one interface. Errors name the path and say what the system
// said: NotFound, PermissionDenied, ResourceExhausted (disk full), AlreadyExists,
// FailedPrecondition for folders and paths that lead through what is none, InvalidArgument for what
// else is no regular file, and Unavailable for the rest.

namespace tenon {

/// A file to read from at any place. Thread-safe.
class InputFile {
 public:
  virtual ~InputFile() = default;
  virtual const std::string& path() const = 0;
  /// Bytes, when it was opened.
  virtual int64_t size() const = 0;
  /// Reads `size` bytes from `offset` on into `out`; fewer only where the file ends. Returns how
  /// many.
  virtual StatusOr<size_t> ReadAt(int64_t offset, size_t size, char* out) const = 0;
};

/// A file to write at its end. Buffered. Used by one thread at a time.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual Status Append(std::string_view data) = 0;
  /// Hands what was appended to the system, so that other processes see it.
  virtual Status Flush() = 0;
  /// Flushes, and waits until the content is where it outlives the machine.
  virtual Status Sync() = 0;
  /// Flushes and closes. The destructor closes too, but cannot say what went wrong.
  virtual Status Close() = 0;
};

/// kNew: AlreadyExists when there is a file of that name.
enum class WriteMode { kTruncate, kAppend, kNew };

/// The file, the folder or the other thing that a path leads to.
struct FileInfo {
  enum class Kind { kFile, kFolder, kOther };
  Kind kind = Kind::kFile;
  int64_t size = 0;  // bytes of a file
  /// When the content was last changed, by the clock of where the file is.
  Clock::WallTime modified_at;
  /// Equal for two paths of one file; empty where the file system cannot tell.
  std::string identity;
};

/// Some files. Only regular files are opened: what could block, or be something else than bytes, is
/// InvalidArgument. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) = 0;
  virtual StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                           WriteMode mode) = 0;
  /// Tells of the thing at the path, behind its symbolic links. NotFound when there is nothing.
  virtual StatusOr<FileInfo> Stat(const std::string& path) = 0;
  /// The names in a folder, sorted, without "." and "..".
  virtual StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  /// Makes the folder and those above it; no error when it is there.
  virtual Status MakeFolders(const std::string& folder) = 0;
  /// Gives a file or a folder another name; a file of that name is replaced. A file system without
  /// names that can be changed copies and removes: others may see both, or a part.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  /// Makes a file or folder that was written whole and synced as `from` known as `to`, in one step
  /// for whoever looks: `to` is what it was before, or all of the new. When it returns OK, the name
  /// outlives the machine, and there is no `from`.
  virtual Status Publish(const std::string& from, const std::string& to) = 0;
  /// Removes a file or an empty folder.
  virtual Status Remove(const std::string& path) = 0;
  /// Removes a file, or a folder with all that is in it; symbolic links are removed, not followed.
  /// NotFound when there is nothing. After another error some of it may be gone.
  virtual Status RemoveTree(const std::string& path) = 0;
  /// Waits until the names in a folder are where they outlive the machine: those that files got by
  /// being made or renamed, and that others lost.
  virtual Status SyncFolder(const std::string& folder) = 0;
};

/// Everything that this process may open: plain paths, "file://" ones, and those of the other
/// schemes that were registered (data/file_systems.h).
FileSystem& AllFiles();

/// The files that `access` allows; everything else is PermissionDenied, naming the path and what is
/// allowed. Not owned. An error when the root is no folder that can be opened.
StatusOr<FileSystem*> FilesOf(const FileAccess& access);

/// Through what files are reached, and what ends reading a large one.
struct FileContext {
  FileSystem* files = &AllFiles();
  const Cancellation* cancellation = nullptr;

  /// The files that `access` allows.
  static StatusOr<FileContext> Of(const FileAccess& access, const Cancellation* cancellation);

  /// OK while nothing was cancelled.
  Status CheckCancelled() const;
};

StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path,
                                               const FileContext& context = {});
StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path,
                                                 WriteMode mode = WriteMode::kTruncate,
                                                 const FileContext& context = {});
/// Reads as InputFile::ReadAt does, and looks now and then whether it was cancelled.
StatusOr<size_t> ReadAt(const InputFile& file, int64_t offset, size_t size, char* out,
                        const FileContext& context);
/// The whole content. ResourceExhausted, before anything is read, when it is larger than the memory
/// limit leaves.
StatusOr<std::string> ReadFileToString(const std::string& path, const FileContext& context = {});
/// Writes a file that appears whole or not at all, whatever dies meanwhile: under a temporary name
/// first, which is synced, then published.
Status WriteStringToFile(const std::string& path, std::string_view content,
                         const FileContext& context = {});
StatusOr<FileInfo> StatFile(const std::string& path, const FileContext& context = {});
/// Whether there is something at the path.
bool FileExists(const std::string& path, const FileContext& context = {});
/// Whether a folder, or a regular file, is at the path.
bool IsFolder(const std::string& path, const FileContext& context = {});
bool IsRegularFile(const std::string& path, const FileContext& context = {});
/// Whether both paths lead to one file that is there.
bool IsSameFile(const std::string& a, const std::string& b, const FileContext& context = {});
/// How long ago the content was last changed, by this machine's clock; 0 when that is to come.
StatusOr<std::chrono::nanoseconds> AgeOfFile(const std::string& path,
                                             const FileContext& context = {});
StatusOr<std::vector<std::string>> ListFolder(const std::string& folder,
                                              const FileContext& context = {});
Status MakeFolders(const std::string& folder, const FileContext& context = {});
Status RenameFile(const std::string& from, const std::string& to, const FileContext& context = {});
Status PublishFile(const std::string& from, const std::string& to, const FileContext& context = {});
Status RemoveFile(const std::string& path, const FileContext& context = {});
Status RemoveTree(const std::string& path, const FileContext& context = {});
Status SyncFolder(const std::string& folder, const FileContext& context = {});

/// The part of a path before its last slash ("" without one), and after it.
std::string FolderOf(std::string_view path);
std::string NameOf(std::string_view path);
/// The two with one slash between them.
std::string JoinPath(std::string_view folder, std::string_view name);
/// `path` as seen from `folder`, both relative to the same place, by their words alone: "../b" for
/// "x/b" and "x/a".
std::string RelativePath(const std::string& path, const std::string& folder);
/// `path` with a suffix that no other process or thread uses, for files to be renamed later.
std::string TemporaryName(std::string_view path);

}  // namespace tenon
