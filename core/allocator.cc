// SPDX-License-Identifier: Apache-2.0
#include "core/allocator.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>

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
    void* const memory = std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) return nullptr;
    if (bytes >= kCountedBytes) in_use_.fetch_add(bytes, std::memory_order_relaxed);
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

 private:
  std::atomic<int64_t> in_use_{0};
};

}  // namespace

Allocator& CpuAllocator() {
  static auto* const allocator = new HostAllocator;
  return *allocator;
}

}  // namespace tenon
