// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
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
  /// Hands what was appended to the system, so that other processes see it; where a file can only
  /// be written as a whole, not more often than is sensible.
  virtual Status Flush() = 0;
  /// Flushes, and waits until the content is where it outlives the machine.
  virtual Status Sync() = 0;
  /// Flushes and closes. The destructor closes too, but cannot say what went wrong; a file that
  /// appears when it is closed, and has not appeared, is dropped by it.
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
  /// Whether a file that OpenOutput begins anew appears when it is closed, in one step, so that
  /// nobody sees half of it and none that is published has to have another name first.
  virtual bool WritesWhole(const std::string& path) {
    (void)path;
    return false;
  }
  /// Removes a file or an empty folder.
  virtual Status Remove(const std::string& path) = 0;
  /// Removes a file, or a folder with all that is in it; symbolic links are removed, not followed.
  /// NotFound when there is nothing. After another error some of it may be gone.
  virtual Status RemoveTree(const std::string& path) = 0;
  /// Waits until the names in a folder are where they outlive the machine: those that files got by
  /// being made or renamed, and that others lost.
  virtual Status SyncFolder(const std::string& folder) = 0;
};

}  // namespace tenon
