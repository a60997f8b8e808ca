// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/device.h"

namespace tenon {

/// Where a task puts the values that come to it over the network: those for a device with memory of
/// its own go where its copies need no staging (DeviceQueue::host_allocator), the others into
/// ordinary memory. Immutable; the devices must outlive it.
class ArrivalMemory {
 public:
  ArrivalMemory() = default;
  explicit ArrivalMemory(const std::vector<Device*>& devices);

  /// For the tensor of a rendezvous key, of any sender's: host memory in every case.
  Allocator& For(std::string_view key) const;

 private:
  /// "/device:GPU:0", of the devices with memory of their own.
  std::vector<std::pair<std::string, Allocator*>> devices_;
};

}  // namespace tenon
