// SPDX-License-Identifier: Apache-2.0
#include "core/device/device_kind.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon {
namespace {

struct KnownKinds {
  Mutex mu;
  /// That of kUnknown, behind the others, stays empty.
  std::array<std::string, DeviceKind::kMost + 1> names ABSL_GUARDED_BY(mu) = {"CPU"};
  uint8_t count ABSL_GUARDED_BY(mu) = 1;

  /// The number of the kind of that name; kMost when there is none.
  uint8_t Find(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const auto* const end = names.begin() + count;
    const auto* const found = std::find(names.begin(), end, name);
    return found == end ? DeviceKind::kMost : static_cast<uint8_t>(found - names.begin());
  }
};

KnownKinds& AllKinds() {
  static auto* const kinds = new KnownKinds;
  return *kinds;
}

bool IsKindName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_';
  });
}

}  // namespace

DeviceKind DeviceKind::Named(std::string_view name) {
  TENON_CHECK(IsKindName(name), "'", name, "' is no kind of device");
  KnownKinds& kinds = AllKinds();
  MutexLock lock(kinds.mu);
  if (const uint8_t known = kinds.Find(name); known < kMost) return DeviceKind(known);
  TENON_CHECK(kinds.count < kMost, "'", name, "' is one kind of device too many");
  kinds.names[kinds.count] = name;
  return DeviceKind(kinds.count++);
}

DeviceKind DeviceKind::Find(std::string_view name) {
  KnownKinds& kinds = AllKinds();
  MutexLock lock(kinds.mu);
  return DeviceKind(kinds.Find(name));
}

std::vector<DeviceKind> DeviceKind::All() {
  KnownKinds& kinds = AllKinds();
  MutexLock lock(kinds.mu);
  std::vector<DeviceKind> all;
  for (uint8_t i = 0; i < kinds.count; ++i) all.push_back(DeviceKind(i));
  return all;
}

std::string_view DeviceKind::name() const {
  KnownKinds& kinds = AllKinds();
  MutexLock lock(kinds.mu);
  return kinds.names[number_];
}

}  // namespace tenon
