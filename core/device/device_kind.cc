// SPDX-License-Identifier: Apache-2.0
#include "core/device/device_kind.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "core/base/mutex.h"

namespace tenon {
namespace {

struct KnownKinds {
  Mutex mu;
  std::array<std::string, DeviceKind::kMaxKinds> names ABSL_GUARDED_BY(mu) = {"CPU"};
  uint8_t count ABSL_GUARDED_BY(mu) = 1;
};

KnownKinds& AllKinds() {
  static auto* const kinds = new KnownKinds;
  return *kinds;
}

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isupper(c) || absl::ascii_isdigit(c) || c == '_';
  });
}

}  // namespace

StatusOr<DeviceKind> DeviceKind::Named(std::string_view name) {
  if (!IsName(name)) {
    return InvalidArgument("'", name,
                           "' is no kind of device: wanted letters A to Z, digits and '_'");
  }
  KnownKinds& kinds = AllKinds();
  MutexLock lock(kinds.mu);
  for (uint8_t i = 0; i < kinds.count; ++i) {
    if (kinds.names[i] == name) return DeviceKind(i);
  }
  if (kinds.count == kMaxKinds) {
    return ResourceExhausted("'", name, "' is one kind of device more than the ", kMaxKinds,
                             " that a process can know");
  }
  kinds.names[kinds.count] = name;
  return DeviceKind(kinds.count++);
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
