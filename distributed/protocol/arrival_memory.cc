// SPDX-License-Identifier: Apache-2.0
#include "distributed/protocol/arrival_memory.h"

#include "core/device/device_queue.h"

namespace tenon {

ArrivalMemory::ArrivalMemory(const std::vector<Device*>& devices) {
  for (Device* d : devices) {
    if (d->queue() == nullptr) continue;
    devices_.emplace_back(d->name().substr(d->name().rfind('/')), &d->queue()->host_allocator());
  }
}

Allocator& ArrivalMemory::For(std::string_view key) const {
  if (devices_.empty()) return CpuAllocator();
  // Whoever receives comes third.
  const size_t first = key.find(';');
  const size_t second = first == key.npos ? first : key.find(';', first + 1);
  if (second == key.npos) return CpuAllocator();
  key.remove_prefix(second + 1);
  const std::string_view receiver = key.substr(0, key.find(';'));
  for (const auto& [name, memory] : devices_) {
    // A session may know the task by another name.
    if (receiver.ends_with(name)) return *memory;
  }
  return CpuAllocator();
}

}  // namespace tenon
