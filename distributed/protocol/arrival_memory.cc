// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/arrival_memory.h"

#include "core/device/device_name.h"
#include "core/device/device_queue.h"
#include "core/device/rendezvous.h"

namespace tenon {

ArrivalMemory::ArrivalMemory(const std::vector<Device*>& devices) {
  for (Device* d : devices) {
    if (d->queue() == nullptr) continue;
    devices_.emplace_back(DevicePartOf(d->name()), &d->queue()->host_allocator());
  }
}

Allocator& ArrivalMemory::For(std::string_view key) const {
  if (devices_.empty()) return CpuAllocator();
  const auto parts = RendezvousKeyParts::Of(key);
  if (!parts) return CpuAllocator();
  for (const auto& [name, memory] : devices_) {
    // A session may know the task by another name.
    if (DevicePartOf(parts->dst_device) == name) return *memory;
  }
  return CpuAllocator();
}

}  // namespace tenon
