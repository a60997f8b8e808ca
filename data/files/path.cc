// SPDX-License-Identifier: Apache-2.0
#include "data/files/path.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "absl/strings/ascii.h"

namespace tenon {

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

std::string RelativePath(const std::string& path, const std::string& folder) {
  const std::filesystem::path to = std::filesystem::path(path).lexically_normal();
  return to.lexically_relative(std::filesystem::path(folder).lexically_normal()).string();
}

std::string TemporaryName(std::string_view path) {
  static const uint64_t process = std::random_device()() ^ static_cast<uint64_t>(getpid()) << 32;
  static std::atomic<uint64_t> next{0};
  return StrCat(path, ".tempstate", absl::Hex(process), "_", next.fetch_add(1));
}

bool IsScheme(std::string_view text) {
  return !text.empty() && absl::ascii_isalpha(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '+' || c == '-' || c == '.';
         });
}

std::string_view SchemeOf(std::string_view path) {
  const size_t end = path.find("://");
  if (end == std::string_view::npos || !IsScheme(path.substr(0, end))) return "";
  return path.substr(0, end);
}

std::string WithoutFileScheme(const std::string& path) {
  constexpr std::string_view kFileScheme = "file://";
  return path.starts_with(kFileScheme) ? path.substr(kFileScheme.size()) : path;
}

StatusOr<std::string> LocalPath(const std::string& path) {
  std::string plain = WithoutFileScheme(path);
  if (SchemeOf(plain).empty()) return plain;
  return Unimplemented("cannot open '", path, "': wanted a file of this machine");
}

Status StatusOfErrno(int error, std::string_view what, std::string_view path) {
  const std::string message = StrCat("cannot ", what, " '", path, "': ", std::strerror(error));
  switch (error) {
    case ENOENT:
      return NotFound(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return PermissionDenied(message);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EFBIG:
      return ResourceExhausted(message);
    case EEXIST:
    case ENOTEMPTY:
      return AlreadyExists(message);
    case EISDIR:
    case ENOTDIR:
      return FailedPrecondition(message);
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      return InvalidArgument(message);
    default:
      return Unavailable(message);
  }
}

}  // namespace tenon
