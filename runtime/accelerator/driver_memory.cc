// SPDX-License-Identifier: Apache-2.0
#include "runtime/accelerator/driver_memory.h"

#include <utility>

#include "runtime/accelerator/arena.h"
#include "runtime/accelerator/stream_driver.h"

namespace tenon {
namespace {

/// Pinned memory that is kept for later.
constexpr size_t kMostKept = 256 << 20;

/// Pinned blocks have sizes of this kind, so that they fit again: powers of two.
size_t PinnedSize(size_t bytes) {
  size_t size = Allocator::kAlignment;
  while (size < bytes) size *= 2;
  return size;
}

}  // namespace

void* DeviceMemory::Allocate(size_t bytes) {
  if (Arena* const arena = Arena::OfThread(driver_)) {
    arena->Refuse();
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

void DeviceMemory::Open(Arena* arena) {
  MutexLock lock(mu_);
  arenas_.push_back(arena);
  open_.fetch_add(1, std::memory_order_acq_rel);
}

void DeviceMemory::Close() {
  std::vector<Block> freed;
  {
    MutexLock lock(mu_);
    if (open_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    freed = std::exchange(freed_, {});
  }
  for (const Block& block : freed) driver_.Free(block.memory, block.bytes);
}

void DeviceMemory::Remove(Arena* arena) {
  MutexLock lock(mu_);
  std::erase(arenas_, arena);
}

/// Whether that has given anything back.
bool DeviceMemory::TakeBack() {
  std::multimap<size_t, void*> blocks;
  {
    MutexLock lock(mu_);
    for (Arena* arena : arenas_) blocks.merge(arena->GiveBack());
  }
  for (const auto& [size, memory] : blocks) Free(memory, size);
  return !blocks.empty();
}

std::string DeviceMemory::DescribeMemory() const {
  const std::string text = driver_.DescribeMemory();
  return text.empty() ? text : StrCat(": ", text);
}

void* PinnedMemory::Allocate(size_t bytes) {
  const size_t size = PinnedSize(bytes);
  {
    MutexLock lock(mu_);
    if (const auto found = kept_.find(size); found != kept_.end() && !found->second.empty()) {
      void* const block = found->second.back();
      found->second.pop_back();
      kept_bytes_ -= size;
      bytes_.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
      return block;
    }
  }
  void* const block = driver_.AllocatePinned(size);
  if (block != nullptr) bytes_.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  return block;
}

void PinnedMemory::Free(void* memory, size_t bytes) {
  const size_t size = PinnedSize(bytes);
  bytes_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  {
    MutexLock lock(mu_);
    if (kept_bytes_ + size <= kMostKept) {
      kept_bytes_ += size;
      kept_[size].push_back(memory);
      return;
    }
  }
  driver_.FreePinned(memory, size);
}

}  // namespace tenon
