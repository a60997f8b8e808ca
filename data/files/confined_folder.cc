// SPDX-License-Identifier: Apache-2.0
#include "data/files/confined_folder.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "data/files/path.h"

namespace tenon {
namespace {

/// As many as the system follows.
constexpr int kMaxLinks = 40;
/// Each folder of a path that is walked is an open descriptor.
constexpr size_t kMaxDepth = 128;

std::vector<std::string> PartsOf(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end > 0 && path.substr(0, end) != ".") parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

/// The folders that lead from the root to where a walk has come.
class OpenFolders {
 public:
  explicit OpenFolders(int root) : root_(root) {}
  ~OpenFolders() { Clear(); }

  int last() const { return folders_.empty() ? root_ : folders_.back(); }
  size_t depth() const { return folders_.size(); }
  void Push(int folder) { folders_.push_back(folder); }
  void Pop() {
    close(folders_.back());
    folders_.pop_back();
  }
  void Clear() {
    while (!folders_.empty()) Pop();
  }
  Place TakeLast(std::string name) {
    if (folders_.empty()) return Place(root_, std::move(name));
    const int folder = folders_.back();
    folders_.pop_back();
    return Place::Owning(folder, std::move(name));
  }

 private:
  const int root_;
  std::vector<int> folders_;
};

}  // namespace

Place::~Place() {
  if (owned_) close(folder_);
}

Place::Place(Place&& other) noexcept
    : folder_(other.folder_),
      owned_(std::exchange(other.owned_, false)),
      name_(std::move(other.name_)) {}

Place& Place::operator=(Place&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(owned_, other.owned_);
  std::swap(name_, other.name_);
  return *this;
}

Place Place::Owning(int folder, std::string name) {
  Place place(folder, std::move(name));
  place.owned_ = true;
  return place;
}

StatusOr<std::unique_ptr<ConfinedFolder>> ConfinedFolder::Open(const std::string& root) {
  if (root.empty()) return InvalidArgument("the folder that files are confined to has no name");
  char* const real = realpath(root.c_str(), nullptr);
  if (real == nullptr) return StatusOfErrno(errno, "confine files to", root);
  std::string canonical = real;
  std::free(real);
  const int folder = open(canonical.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return StatusOfErrno(errno, "confine files to", root);
  return std::unique_ptr<ConfinedFolder>(new ConfinedFolder(root, std::move(canonical), folder));
}

ConfinedFolder::~ConfinedFolder() { close(folder_); }

Status ConfinedFolder::Outside(std::string_view path) const {
  return PermissionDenied("cannot open '", path, "': it is outside the folder '", given_,
                          "', and graphs may reach no others here");
}

bool ConfinedFolder::RelativeParts(std::string_view path, std::vector<std::string>* parts) const {
  *parts = PartsOf(path);
  if (!path.starts_with('/')) return true;
  for (const std::string& root : {root_, given_}) {
    if (!root.starts_with('/')) continue;
    const std::vector<std::string> above = PartsOf(root);
    if (above.size() <= parts->size() && std::equal(above.begin(), above.end(), parts->begin())) {
      parts->erase(parts->begin(), parts->begin() + static_cast<int64_t>(above.size()));
      return true;
    }
  }
  return false;
}

StatusOr<Place> ConfinedFolder::Find(std::string_view path, bool follow_last) const {
  if (path.find('\0') != std::string_view::npos) {
    return InvalidArgument("a path cannot hold a zero byte, found '", path, "'");
  }
  if (path.empty() || path.size() >= PATH_MAX) {
    return StatusOfErrno(path.empty() ? ENOENT : ENAMETOOLONG, "open", path.substr(0, 100));
  }
  if (!SchemeOf(path).empty()) return Outside(path);
  std::vector<std::string> rest;
  if (!RelativeParts(path, &rest)) return Outside(path);
  std::reverse(rest.begin(), rest.end());  // the next one is the last
  OpenFolders folders(folder_);
  int links = 0;
  while (!rest.empty()) {
    std::string part = std::move(rest.back());
    rest.pop_back();
    if (part == "..") {
      if (folders.depth() == 0) return Outside(path);
      folders.Pop();
      continue;
    }
    if (!rest.empty() || follow_last) {
      char target[PATH_MAX];
      const ssize_t length = readlinkat(folders.last(), part.c_str(), target, sizeof(target));
      if (length >= 0) {
        std::vector<std::string> parts;
        const std::string_view text(target, length);
        if (++links > kMaxLinks || length == sizeof(target)) {
          return StatusOfErrno(ELOOP, "open", path);
        }
        if (!RelativeParts(text, &parts)) return Outside(path);
        if (text.starts_with('/')) folders.Clear();
        rest.insert(rest.end(), parts.rbegin(), parts.rend());
        if (rest.size() > PATH_MAX) return StatusOfErrno(ENAMETOOLONG, "open", path);
        continue;
      }
    }
    if (rest.empty()) return folders.TakeLast(std::move(part));
    if (folders.depth() == kMaxDepth) return StatusOfErrno(ENAMETOOLONG, "open", path);
    const int folder =
        openat(folders.last(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0) return StatusOfErrno(errno, "open", path);
    folders.Push(folder);
  }
  return folders.TakeLast(".");
}

}  // namespace tenon
