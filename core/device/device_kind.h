// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tenon {

/// The hardware that a kernel is written for, by the name that names of devices have for it: "CPU",
/// "GPU". The CPU is always there, and a plugin brings its kind by naming it. Equal names are one
/// kind, for the life of the process. Thread-safe.
class DeviceKind {
 public:
  /// The kind of devices of other tasks whose kind nobody has brought to this process: it has no
  /// kernels of its own here.
  static const DeviceKind kUnknown;

  /// The CPU.
  constexpr DeviceKind() = default;
  /// Brings the kind of that name, of letters A to Z, digits and '_'. A process has kMost at most.
  static DeviceKind Named(std::string_view name);
  /// The kind of that name, kUnknown unless it has been brought.
  static DeviceKind Find(std::string_view name);
  /// The kinds that have been brought, the CPU first.
  static std::vector<DeviceKind> All();

  /// A view that lives as long as the process; empty for kUnknown.
  std::string_view name() const;
  friend constexpr bool operator==(DeviceKind, DeviceKind) = default;

  static constexpr uint8_t kMost = 16;

 private:
  explicit constexpr DeviceKind(uint8_t number) : number_(number) {}

  uint8_t number_ = 0;  // in the order of being brought
};

inline constexpr DeviceKind DeviceKind::kUnknown{DeviceKind::kMost};
inline constexpr DeviceKind kCpu;

}  // namespace tenon
