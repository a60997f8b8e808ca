// SPDX-License-Identifier: Apache-2.0
#include "tools/writable.h"

#include <unistd.h>

#include <cerrno>

#include "data/files/file.h"

namespace tenon::tools {

Status CheckWritable(const std::string& path, std::string_view flag) {
  if (IsFolder(path)) {
    return InvalidArgument(flag, ": cannot write '", path, "': it is a folder");
  }
  // Whether a file elsewhere can be written is known to its server, which tells who writes.
  if (!SchemeOf(path).empty()) return OkStatus();
  if (FileExists(path)) {
    return access(path.c_str(), W_OK) == 0 ? OkStatus()
                                           : Annotate(StatusOfErrno(errno, "write", path), flag);
  }
  std::string folder = FolderOf(path);
  if (folder.empty()) folder = path.starts_with('/') ? "/" : ".";
  if (!IsFolder(folder)) {
    return NotFound(flag, ": cannot write '", path, "': there is no folder '", folder, "'");
  }
  return access(folder.c_str(), W_OK | X_OK) == 0
             ? OkStatus()
             : Annotate(StatusOfErrno(errno, "write", path), flag);
}

}  // namespace tenon::tools
