// SPDX-License-Identifier: Apache-2.0
#include "tools/writable.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "data/file.h"
#include "data/local_file.h"

namespace tenon::tools {

Status CheckWritable(const std::string& path, std::string_view flag) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return InvalidArgument(flag, ": cannot write '", path, "': it is a folder");
  }
  if (std::filesystem::exists(path, error)) {
    return access(path.c_str(), W_OK) == 0 ? OkStatus()
                                           : Annotate(StatusOfErrno(errno, "write", path), flag);
  }
  std::string folder = FolderOf(path);
  if (folder.empty()) folder = path.starts_with('/') ? "/" : ".";
  if (!std::filesystem::is_directory(folder, error)) {
    return NotFound(flag, ": cannot write '", path, "': there is no folder '", folder, "'");
  }
  return access(folder.c_str(), W_OK | X_OK) == 0
             ? OkStatus()
             : Annotate(StatusOfErrno(errno, "write", path), flag);
}

}  // namespace tenon::tools
