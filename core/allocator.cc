// SPDX-License-Identifier: Apache-2.0
#include "core/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "core/memory_limit.h"

namespace tenon {
namespace {

/// Counts only large blocks: an atomic add on every scalar would cost more than the scalar.
constexpr size_t kCountedBytes = 4096;

/// From here on the system gives memory in pages of 2 MiB: with those of 4 KiB, the first touch of
/// each costs more than copying a tensor into it.
constexpr size_t kHugePageBytes = 2 << 20;
constexpr size_t kLargeBytes = 4 * kHugePageBytes;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

class HostAllocator final : public Allocator {
 public:
  std::string_view name() const override { return "cpu"; }
  void* Allocate(size_t bytes) override {
    const size_t alignment = bytes >= kLargeBytes ? kHugePageBytes : kAlignment;
    const size_t rounded = RoundUp(bytes, alignment);
    if (rounded < bytes) return nullptr;
    if (bytes >= kCountedBytes && !Take(bytes)) return nullptr;
    void* const memory = std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) {
      if (bytes >= kCountedBytes) in_use_.fetch_sub(bytes, std::memory_order_relaxed);
      return nullptr;
    }
    // Where it is not possible, small pages do.
    if (bytes >= kLargeBytes) static_cast<void>(madvise(memory, rounded, MADV_HUGEPAGE));
    return memory;
  }
  void Free(void* memory, size_t bytes) override {
    if (bytes >= kCountedBytes) in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    std::free(memory);
  }
  bool IsHostMemory() const override { return true; }
  int64_t bytes_in_use() const override { return in_use_.load(std::memory_order_relaxed); }
  void set_limit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

 private:
  static int64_t PhysicalMemory() {
    return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  }

  /// Counts `bytes` unless that would pass the limit.
  bool Take(size_t bytes) {
    const int64_t limit = limit_.load(std::memory_order_relaxed);
    // What is asked for in vain is not even added for a moment, so that the sum cannot overflow.
    const auto size = static_cast<int64_t>(bytes);
    if (size < 0 || size > limit) return false;
    if (in_use_.fetch_add(size, std::memory_order_relaxed) <= limit - size) return true;
    in_use_.fetch_sub(size, std::memory_order_relaxed);
    return false;
  }

  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> limit_{PhysicalMemory()};
};

HostAllocator& TheHostAllocator() {
  static auto* const allocator = new HostAllocator;
  return *allocator;
}

}  // namespace

Allocator& CpuAllocator() { return TheHostAllocator(); }

void SetCpuMemoryLimit(int64_t bytes) { TheHostAllocator().set_limit(bytes); }

}  // namespace tenon
