// SPDX-License-Identifier: Apache-2.0
#include "core/allocator.h"

#include <atomic>
#include <cstdlib>

namespace tenon {
namespace {

/// Counts only large blocks: an atomic add on every scalar would cost more than the scalar.
constexpr size_t kCountedBytes = 4096;

class HostAllocator final : public Allocator {
 public:
  std::string_view name() const override { return "cpu"; }
  void* Allocate(size_t bytes) override {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (rounded < bytes) return nullptr;
    if (bytes >= kCountedBytes) in_use_.fetch_add(bytes, std::memory_order_relaxed);
    return std::aligned_alloc(kAlignment, rounded);
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
