// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// What kernels are written for, by the name that names of devices have for it: "CPU", "GPU". The
/// CPU is always there; a plugin brings a kind by naming it, and so does another task that has such
/// a device. Equal names are one kind, for the life of the process. Thread-safe.
class DeviceKind {
 public:
  /// As many names as a process can know.
  static constexpr int kMaxKinds = 32;

  /// The CPU.
  constexpr DeviceKind() = default;
  /// The kind of that name. InvalidArgument for what is no name of a kind, of letters A to Z,
  /// digits and '_'; ResourceExhausted when kMaxKinds others have been named.
  static StatusOr<DeviceKind> Named(std::string_view name);
  /// The kinds that were named until now, the CPU first.
  static std::vector<DeviceKind> All();

  /// Lives as long as the process.
  std::string_view name() const;
  friend constexpr bool operator==(DeviceKind, DeviceKind) = default;

 private:
  explicit constexpr DeviceKind(uint8_t number) : number_(number) {}

  uint8_t number_ = 0;  // in the order of being named
};

inline constexpr DeviceKind kCpu;

}  // namespace tenon
