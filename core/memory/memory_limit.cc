// SPDX-License-Identifier: Apache-2.0
#include "core/memory/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>

namespace tenon {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A file of one number; kNoLimit when it says "max", or is missing.
int64_t LimitIn(const std::string& path) {
  const std::string text = ContentOf(path);
  int64_t limit = kNoLimit;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  return error == std::errc() && limit > 0 ? limit : kNoLimit;
}

/// The lowest limit from the group `path` up to the root. In a container the mount is often the
/// group itself while `path` is the host's name for it: what is missing then does not matter.
int64_t LowestUpwards(const std::string& mount, std::string path, const std::string& file) {
  int64_t limit = kNoLimit;
  while (true) {
    limit = std::min(limit, LimitIn(mount + path + "/" + file));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return limit;
    path.resize(slash);
  }
}

bool HasMemoryController(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "memory") return true;
    controllers.remove_prefix(comma == std::string_view::npos ? controllers.size() : comma + 1);
  }
  return false;
}

}  // namespace

int64_t CgroupMemoryLimit(std::string_view membership, const std::string& mount) {
  int64_t limit = kNoLimit;
  while (!membership.empty()) {
    const size_t end = std::min(membership.find('\n'), membership.size());
    const std::string_view line = membership.substr(0, end);
    membership.remove_prefix(std::min(end + 1, membership.size()));
    // "hierarchy:controllers:path"; version 2 is hierarchy 0, without controllers.
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string path(line.substr(second + 1));
    if (path == "/") path.clear();
    if (controllers.empty()) {
      limit = std::min(limit, LowestUpwards(mount, path, "memory.max"));
    } else if (HasMemoryController(controllers)) {
      limit = std::min(limit, LowestUpwards(mount + "/memory", path, "memory.limit_in_bytes"));
    }
  }
  return limit;
}

int64_t DefaultCpuMemoryLimit() {
  const int64_t physical =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  const int64_t available =
      std::min(physical, CgroupMemoryLimit(ContentOf("/proc/self/cgroup"), "/sys/fs/cgroup"));
  return available - available / 16;
}

}  // namespace tenon
