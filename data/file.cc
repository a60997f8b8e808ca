// SPDX-License-Identifier: Apache-2.0
#include "data/file.h"

#include <unistd.h>

#include <atomic>
#include <random>

#include "data/local_file.h"

namespace tenon {

StatusOr<FileSystem*> FileSystemOf(std::string_view path) {
  const size_t end = path.find("://");
  if (end == std::string_view::npos || path.starts_with("file://")) return &LocalFiles();
  return Unimplemented("cannot open '", path, "': there is no file system for ",
                       path.substr(0, end), "://");
}

StatusOr<std::unique_ptr<InputFile>> OpenInput(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(FileSystem * files, FileSystemOf(path));
  return files->OpenInput(path);
}

StatusOr<std::unique_ptr<OutputFile>> OpenOutput(const std::string& path, WriteMode mode) {
  TENON_ASSIGN_OR_RETURN(FileSystem * files, FileSystemOf(path));
  return files->OpenOutput(path, mode);
}

StatusOr<std::string> ReadFile(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(const auto file, OpenInput(path));
  std::string content(file->size(), '\0');
  TENON_ASSIGN_OR_RETURN(const size_t found, file->ReadAt(0, content.size(), content.data()));
  content.resize(found);
  return content;
}

Status WriteFile(const std::string& path, std::string_view content) {
  const std::string temporary = TemporaryName(path);
  const auto write = [&]() -> Status {
    TENON_ASSIGN_OR_RETURN(const auto file, OpenOutput(temporary));
    TENON_RETURN_IF_ERROR(file->Append(content));
    TENON_RETURN_IF_ERROR(file->Close());
    return RenameFile(temporary, path);
  };
  Status status = write();
  if (!status.ok()) RemoveFile(temporary).IgnoreError();
  return status;
}

bool FileExists(const std::string& path) {
  const auto files = FileSystemOf(path);
  return files.ok() && (*files)->Exists(path);
}

StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) {
  TENON_ASSIGN_OR_RETURN(FileSystem * files, FileSystemOf(folder));
  return files->List(folder);
}

Status MakeFolders(const std::string& folder) {
  TENON_ASSIGN_OR_RETURN(FileSystem * files, FileSystemOf(folder));
  return files->MakeFolders(folder);
}

Status RenameFile(const std::string& from, const std::string& to) {
  TENON_ASSIGN_OR_RETURN(FileSystem * files, FileSystemOf(from));
  TENON_ASSIGN_OR_RETURN(FileSystem * same, FileSystemOf(to));
  if (files != same) return Unimplemented("cannot rename '", from, "' to '", to, "'");
  return files->Rename(from, to);
}

Status RemoveFile(const std::string& path) {
  TENON_ASSIGN_OR_RETURN(FileSystem * files, FileSystemOf(path));
  return files->Remove(path);
}

std::string FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return "";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

std::string NameOf(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

std::string JoinPath(std::string_view folder, std::string_view name) {
  if (folder.empty() || folder.ends_with('/')) return StrCat(folder, name);
  return StrCat(folder, "/", name);
}

std::string TemporaryName(std::string_view path) {
  static const uint64_t process = std::random_device()() ^ static_cast<uint64_t>(getpid()) << 32;
  static std::atomic<uint64_t> next{0};
  return StrCat(path, ".tempstate", absl::Hex(process), "_", next.fetch_add(1));
}

}  // namespace tenon
