// SPDX-License-Identifier: Apache-2.0
#include "core/memory/allocator.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <deque>

#include "core/base/mutex.h"
#include "core/base/sanitizers.h"
#include "core/memory/counted_memory.h"
#include "core/memory/memory_limit.h"

namespace tenon {
namespace {

/// Counts only large blocks: an atomic add on every scalar would cost more than the scalar.
constexpr size_t kCountedBytes = 4096;

/// A thread adds up the smaller blocks of AllocateCounted and those of AllocateTallied, and tells
/// the others when it has this.
constexpr int64_t kBatchBytes = 64 << 10;

/// What the C library takes for a block beside its bytes, about.
constexpr size_t kBlockOverhead = 16;

/// From here on the system gives memory in pages of 2 MiB: with those of 4 KiB, the first touch of
/// each costs more than copying a tensor into it.
constexpr size_t kHugePageBytes = 2 << 20;
constexpr size_t kLargeBytes = 4 * kHugePageBytes;

/// From here on freed blocks are kept for the next of the same size, as every step of a session
/// asks for, and how much of them: the system clears pages each time it gives them, which costs as
/// much as filling them.
constexpr size_t kKeptBlockBytes = 512 << 10;
constexpr size_t kKeptBytes = 256 << 20;

// A kept block would hide its use after the end from AddressSanitizer.
constexpr bool kKeepsBlocks = !TENON_ADDRESS_SANITIZER;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t AlignmentOf(size_t bytes) {
  return bytes >= kLargeBytes ? kHugePageBytes : Allocator::kAlignment;
}

/// Freed blocks, the longest kept first. Thread-safe.
class KeptBlocks {
 public:
  /// A block of exactly `bytes`, or null.
  void* Take(size_t bytes) {
    MutexLock lock(mu_);
    for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
      if (it->bytes != bytes) continue;
      void* const memory = it->memory;
      kept_ -= bytes;
      blocks_.erase(it);
      return memory;
    }
    return nullptr;
  }
  void Keep(void* memory, size_t bytes) {
    MutexLock lock(mu_);
    blocks_.push_back({memory, bytes});
    kept_ += bytes;
    Shrink(kKeptBytes);
  }
  void Release() {
    MutexLock lock(mu_);
    Shrink(0);
  }
  size_t num_bytes() {
    MutexLock lock(mu_);
    return kept_;
  }

 private:
  struct Block {
    void* memory;
    size_t bytes;
  };
  void Shrink(size_t limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    while (kept_ > limit) {
      kept_ -= blocks_.front().bytes;
      std::free(blocks_.front().memory);
      blocks_.pop_front();
    }
  }

  Mutex mu_;
  std::deque<Block> blocks_ ABSL_GUARDED_BY(mu_);
  size_t kept_ ABSL_GUARDED_BY(mu_) = 0;
};

class HostAllocator final : public Allocator {
 public:
  std::string_view name() const override { return "cpu"; }
  void* Allocate(size_t bytes) override {
    const size_t alignment = AlignmentOf(bytes), rounded = RoundUp(bytes, alignment);
    if (rounded < bytes) return nullptr;
    if (bytes >= kCountedBytes && !Take(bytes)) return nullptr;
    if (bytes >= kKeptBlockBytes) {
      if (void* const kept = kept_.Take(rounded); kept != nullptr) return kept;
      const auto used = static_cast<size_t>(in_use_.load(std::memory_order_relaxed));
      if (used + kept_.num_bytes() > static_cast<size_t>(limit_.load(std::memory_order_relaxed))) {
        kept_.Release();
      }
    }
    void* memory = std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) {
      kept_.Release();
      memory = std::aligned_alloc(alignment, rounded);
    }
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
    if (bytes >= kKeptBlockBytes && kKeepsBlocks) {
      kept_.Keep(memory, RoundUp(bytes, AlignmentOf(bytes)));
    } else {
      std::free(memory);
    }
  }
  bool IsHostMemory() const override { return true; }
  int64_t bytes_in_use() const override { return in_use_.load(std::memory_order_relaxed); }
  void set_limit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
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
  void TakeBeyondLimit(int64_t bytes) { in_use_.fetch_add(bytes, std::memory_order_relaxed); }
  void GiveBack(int64_t bytes) { in_use_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> limit_{DefaultCpuMemoryLimit()};
  KeptBlocks kept_;
};

HostAllocator& TheHostAllocator() {
  static auto* const allocator = new HostAllocator;
  return *allocator;
}

/// What a thread has taken (or, when negative, given back) in small blocks and not yet told.
class SmallBlocks {
 public:
  ~SmallBlocks() { TheHostAllocator().GiveBack(-bytes_); }
  bool Take(int64_t bytes) {
    if (bytes_ + bytes > kBatchBytes) {
      if (!TheHostAllocator().Take(bytes_ + bytes)) return false;
      bytes_ = 0;
    } else {
      bytes_ += bytes;
    }
    return true;
  }
  void TakeBeyondLimit(int64_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= kBatchBytes) return;
    TheHostAllocator().TakeBeyondLimit(bytes_);
    bytes_ = 0;
  }
  void GiveBack(int64_t bytes) {
    bytes_ -= bytes;
    if (bytes_ > -kBatchBytes) return;
    TheHostAllocator().GiveBack(-bytes_);
    bytes_ = 0;
  }

 private:
  int64_t bytes_ = 0;
};
thread_local SmallBlocks small_blocks;

}  // namespace

void* AllocateCounted(size_t bytes) {
  if (bytes >= kCountedBytes) return TheHostAllocator().Allocate(bytes);
  const auto counted = static_cast<int64_t>(bytes + kBlockOverhead);
  if (!small_blocks.Take(counted)) return nullptr;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) small_blocks.GiveBack(counted);
  return memory;
}

void FreeCounted(void* memory, size_t bytes) {
  if (bytes >= kCountedBytes) return TheHostAllocator().Free(memory, bytes);
  std::free(memory);
  small_blocks.GiveBack(static_cast<int64_t>(bytes + kBlockOverhead));
}

void* AllocateTallied(size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  small_blocks.TakeBeyondLimit(static_cast<int64_t>(bytes + kBlockOverhead));
  return memory;
}

void FreeTallied(void* memory, size_t bytes) {
  std::free(memory);
  small_blocks.GiveBack(static_cast<int64_t>(bytes + kBlockOverhead));
}

Allocator& CpuAllocator() { return TheHostAllocator(); }

void SetCpuMemoryLimit(int64_t bytes) { TheHostAllocator().set_limit(bytes); }
int64_t CpuMemoryLimit() { return TheHostAllocator().limit(); }

}  // namespace tenon
