// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/memory/allocator.h"
#include "core/memory/memory_description.h"
#include "runtime/accelerator/driver_streams.h"

namespace tenon {

/// Memory of a device that a capture keeps for its kernels: an arena. Thread-safe.
class KeptMemory {
 public:
  virtual ~KeptMemory() = default;
  /// The capture is to fail: memory was wanted that does not belong to it, or others needed what
  /// was freed meanwhile.
  virtual void Refuse() = 0;
  /// If nothing uses them, the free blocks with their sizes, which are not kept any more.
  virtual std::multimap<size_t, void*> GiveBack() = 0;
};

/// The memory of an accelerator, in the order of its kernels. Thread-safe.
class DeviceMemory final : public Allocator, public MemoryDescription {
 public:
  explicit DeviceMemory(DriverStreams& driver) : driver_(driver) {}
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
  /// Close the calling thread gets no other memory of the device, and what is freed is kept from
  /// everybody, unless memory is out: then the arena refuses.
  void Open(KeptMemory* arena);
  /// On the thread that opened it.
  void Close();
  void Remove(KeptMemory* arena);

 private:
  struct Block {
    void* memory;
    size_t bytes;
  };
  bool TakeBack();

  DriverStreams& driver_;
  std::atomic<int64_t> bytes_{0};
  Mutex mu_;
  std::vector<KeptMemory*> arenas_ ABSL_GUARDED_BY(mu_);
  std::vector<Block> freed_ ABSL_GUARDED_BY(mu_);  // while there are open arenas
  std::atomic<int> open_{0};
};

/// Pinned host memory, up to a limit, since the system cannot do without the rest. Blocks are kept
/// for the next of their size: pinning takes the system long, and giving back waits for the device.
/// Thread-safe.
class PinnedMemory final : public Allocator {
 public:
  /// A block of so many bytes is there beyond the limit too.
  static constexpr size_t kSmallBytes = 4096;

  /// The limit when it is 0: a thirty-second of what the process may take.
  explicit PinnedMemory(DriverStreams& driver, size_t limit = 0);
  std::string_view name() const override { return "pinned"; }
  /// Null where the limit is reached, too.
  void* Allocate(size_t bytes) override;
  void Free(void* memory, size_t bytes) override;
  bool IsHostMemory() const override { return true; }
  int64_t bytes_in_use() const override { return bytes_.load(std::memory_order_relaxed); }
  /// Whether a block begins there.
  bool Contains(const void* memory);

 private:
  /// Takes kept blocks away, with their sizes, until `most` bytes are left or none is kept.
  std::vector<std::pair<void*, size_t>> Shrink(size_t most) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  DriverStreams& driver_;
  const size_t limit_;
  std::atomic<int64_t> bytes_{0};
  Mutex mu_;
  size_t pinned_bytes_ ABSL_GUARDED_BY(mu_) = 0;  // in use and kept
  flat_hash_map<size_t, std::vector<void*>> kept_ ABSL_GUARDED_BY(mu_);
  flat_hash_set<const void*> blocks_ ABSL_GUARDED_BY(mu_);  // in use and kept
};

/// Pinned host memory as long as there is some, then other. Thread-safe.
class StagingMemory final : public Allocator {
 public:
  explicit StagingMemory(PinnedMemory& pinned) : pinned_(pinned) {}
  std::string_view name() const override { return "staging"; }
  void* Allocate(size_t bytes) override;
  void Free(void* memory, size_t bytes) override;
  bool IsHostMemory() const override { return true; }
  int64_t bytes_in_use() const override { return bytes_.load(std::memory_order_relaxed); }

 private:
  PinnedMemory& pinned_;
  std::atomic<int64_t> bytes_{0};
};

}  // namespace tenon
