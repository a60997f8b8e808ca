// SPDX-License-Identifier: Apache-2.0
#include "runtime/accelerator/driver_memory.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/memory/memory_limit.h"

namespace tenon {
namespace {

/// The arena that the calling thread captures with, and the memory that it is of.
struct OpenArena {
  const DeviceMemory* memory = nullptr;
  KeptMemory* arena = nullptr;
};
constinit thread_local OpenArena open_of_thread;

/// Pinned blocks have sizes of this kind, so that they fit again: four to an octave.
size_t PinnedSize(size_t bytes) {
  bytes = std::max(bytes, Allocator::kAlignment);
  const size_t unit = std::max(Allocator::kAlignment, std::bit_floor(bytes) / 4);
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* DeviceMemory::Allocate(size_t bytes) {
  if (open_of_thread.memory == this) {
    open_of_thread.arena->Refuse();
    return nullptr;
  }
  return Allocate(Stream::kCompute, bytes);
}

void* DeviceMemory::Allocate(Stream stream, size_t bytes) {
  void* memory = driver_.Allocate(stream, bytes);
  if (memory == nullptr && TakeBack()) memory = driver_.Allocate(stream, bytes);
  if (memory != nullptr) bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return memory;
}

void DeviceMemory::Free(void* memory, size_t bytes) {
  bytes_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  if (open_.load(std::memory_order_acquire) > 0) {
    MutexLock lock(mu_);
    if (open_.load(std::memory_order_acquire) > 0) {
      freed_.push_back({memory, bytes});
      return;
    }
  }
  driver_.Free(memory, bytes);
}

void DeviceMemory::Copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) driver_.Copy(Stream::kCompute, to, from, bytes);
}

void DeviceMemory::Open(KeptMemory* arena) {
  open_of_thread = {this, arena};
  MutexLock lock(mu_);
  arenas_.push_back(arena);
  open_.fetch_add(1, std::memory_order_acq_rel);
}

void DeviceMemory::Close() {
  open_of_thread = {};
  std::vector<Block> freed;
  {
    MutexLock lock(mu_);
    if (open_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    freed = std::exchange(freed_, {});
  }
  for (const Block& block : freed) driver_.Free(block.memory, block.bytes);
}

void DeviceMemory::Remove(KeptMemory* arena) {
  MutexLock lock(mu_);
  std::erase(arenas_, arena);
}

/// Whether that has given anything back. What was kept for open arenas is worth more elsewhere.
bool DeviceMemory::TakeBack() {
  std::multimap<size_t, void*> blocks;
  std::vector<Block> freed;
  {
    MutexLock lock(mu_);
    freed = std::exchange(freed_, {});
    for (KeptMemory* arena : arenas_) {
      if (!freed.empty()) arena->Refuse();
      blocks.merge(arena->GiveBack());
    }
  }
  // No variable was in these.
  for (const auto& [size, memory] : blocks) {
    bytes_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
    driver_.Free(memory, size);
  }
  for (const Block& block : freed) driver_.Free(block.memory, block.bytes);
  return !blocks.empty() || !freed.empty();
}

std::string DeviceMemory::DescribeMemory() const {
  const std::string text = driver_.DescribeMemory();
  return text.empty() ? text : StrCat(": ", text);
}

PinnedMemory::PinnedMemory(DriverStreams& driver, size_t limit)
    : driver_(driver),
      limit_(limit > 0 ? limit : static_cast<size_t>(DefaultCpuMemoryLimit()) / 32) {}

void* PinnedMemory::Allocate(size_t bytes) {
  const size_t size = PinnedSize(bytes);
  std::vector<std::pair<void*, size_t>> given_back;
  bool fits = true;
  {
    MutexLock lock(mu_);
    if (const auto found = kept_.find(size); found != kept_.end() && !found->second.empty()) {
      void* const block = found->second.back();
      found->second.pop_back();
      bytes_.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
      return block;
    }
    if (size > kSmallBytes) {
      if (size <= limit_) given_back = Shrink(limit_ - size);
      fits = size <= limit_ && pinned_bytes_ <= limit_ - size;
    }
    if (fits) pinned_bytes_ += size;
  }
  for (const auto& [block, length] : given_back) driver_.FreePinned(block, length);
  if (!fits) return nullptr;
  void* const block = driver_.AllocatePinned(size);
  MutexLock lock(mu_);
  if (block == nullptr) {
    pinned_bytes_ -= size;
    return nullptr;
  }
  blocks_.insert(block);
  bytes_.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  return block;
}

std::vector<std::pair<void*, size_t>> PinnedMemory::Shrink(size_t most) {
  std::vector<std::pair<void*, size_t>> taken;
  for (auto& [size, blocks] : kept_) {
    while (pinned_bytes_ > most && !blocks.empty()) {
      taken.emplace_back(blocks.back(), size);
      blocks_.erase(blocks.back());
      blocks.pop_back();
      pinned_bytes_ -= size;
    }
  }
  return taken;
}

void PinnedMemory::Free(void* memory, size_t bytes) {
  const size_t size = PinnedSize(bytes);
  bytes_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  MutexLock lock(mu_);
  kept_[size].push_back(memory);
}

bool PinnedMemory::Contains(const void* memory) {
  MutexLock lock(mu_);
  return blocks_.contains(memory);
}

void* StagingMemory::Allocate(size_t bytes) {
  void* memory = pinned_.Allocate(bytes);
  if (memory == nullptr) memory = CpuAllocator().Allocate(bytes);
  if (memory != nullptr) bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return memory;
}

void StagingMemory::Free(void* memory, size_t bytes) {
  bytes_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  if (pinned_.Contains(memory)) {
    pinned_.Free(memory, bytes);
  } else {
    CpuAllocator().Free(memory, bytes);
  }
}

}  // namespace tenon
