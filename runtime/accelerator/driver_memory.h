// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <vector>

#include "core/allocator.h"
#include "core/hash_map.h"
#include "core/memory_description.h"
#include "core/mutex.h"

namespace tenon {

class Arena;
class StreamDriver;
enum class Stream : uint8_t;

/// The memory of an accelerator, in the order of its kernels. Thread-safe.
class DeviceMemory final : public Allocator, public MemoryDescription {
 public:
  explicit DeviceMemory(StreamDriver& driver) : driver_(driver) {}
  std::string_view name() const override { return "device"; }
  void* Allocate(size_t bytes) override;
  /// For work on that stream; Free takes it back too.
  void* Allocate(Stream stream, size_t bytes);
  void Free(void* memory, size_t bytes) override;
  bool IsHostMemory() const override { return false; }
  int64_t bytes_in_use() const override { return bytes_.load(std::memory_order_relaxed); }
  void Copy(void* to, const void* from, size_t bytes) override;
  std::string DescribeMemory() const override;

  /// Arenas are asked to give back what they hold for later before memory is said to be out. Until
  /// Close what is freed is kept from everybody.
  void Open(Arena* arena);
  void Close();
  void Remove(Arena* arena);

 private:
  struct Block {
    void* memory;
    size_t bytes;
  };
  bool TakeBack();

  StreamDriver& driver_;
  std::atomic<int64_t> bytes_{0};
  Mutex mu_;
  std::vector<Arena*> arenas_ ABSL_GUARDED_BY(mu_);
  std::vector<Block> freed_ ABSL_GUARDED_BY(mu_);  // while there are open arenas
  std::atomic<int> open_{0};
};

/// Pinned host memory. Blocks are kept for the next of their size: pinning takes the system long.
/// Thread-safe.
class PinnedMemory final : public Allocator {
 public:
  explicit PinnedMemory(StreamDriver& driver) : driver_(driver) {}
  std::string_view name() const override { return "pinned"; }
  void* Allocate(size_t bytes) override;
  void Free(void* memory, size_t bytes) override;
  bool IsHostMemory() const override { return true; }
  int64_t bytes_in_use() const override { return bytes_.load(std::memory_order_relaxed); }

 private:
  StreamDriver& driver_;
  std::atomic<int64_t> bytes_{0};
  Mutex mu_;
  size_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  flat_hash_map<size_t, std::vector<void*>> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
