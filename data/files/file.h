// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/file_access.h"
#include "core/base/status.h"
#include "data/files/file_system.h"
#include "data/files/path.h"

// Opening, reading and changing files, wherever they are.

namespace tenon {

/// Everything that this process may open: plain paths, "file://" ones, and those of the other
/// schemes that were registered (data/files/file_systems.h).
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
/// A name for a file that is to appear whole as `path` or not at all, whatever dies meanwhile: it
/// is written, synced, closed and given to PublishWhole. The name is a temporary one, or `path`
/// itself where the file system writes files whole.
std::string NameToPublish(const std::string& path, const FileContext& context = {});
Status PublishWhole(const std::string& written, const std::string& path,
                    const FileContext& context = {});
/// Writes a file that appears whole or not at all.
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

}  // namespace tenon
