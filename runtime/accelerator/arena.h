// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <string_view>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/memory/allocator.h"
#include "core/memory/capture_memory.h"
#include "core/memory/memory_description.h"
#include "runtime/accelerator/stream_driver.h"

namespace tenon {

/// The memory of an accelerator that a capture's kernels use. Blocks that are freed serve again
/// within the capture, in the order in which its kernels run, and nobody else gets them while it
/// lives. Thread-safe, but for Allocate before Close.
class Arena final : public Allocator,
                    public KeptMemory,
                    public MemoryDescription,
                    public CaptureMemory {
 public:
  /// Until Close copies within it are part of `capture`, and the calling thread gets no other
  /// memory of the device: a tensor beyond the capture would be written by it only.
  Arena(StreamDriver& driver, DriverCapture& capture);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void Refuse() override { refused_.store(true, std::memory_order_relaxed); }
  bool refused() const { return refused_.load(std::memory_order_relaxed); }

  /// The capture is made: what is allocated from now on, for copies of tensors that it gave, is
  /// the device's as any other.
  void Close();
  /// The capture is gone. What is in use is given back when it is free, then the arena itself
  /// goes.
  void Abandon();

  /// Keeps the memory until Rest, for work that is queued; false when it has been given back.
  bool Use();
  void Rest();
  std::multimap<size_t, void*> GiveBack() override;

  std::string_view name() const override { return "device"; }
  void* Allocate(size_t bytes) override;
  void Free(void* memory, size_t bytes) override;
  bool IsHostMemory() const override { return false; }
  int64_t bytes_in_use() const override;
  void Copy(void* to, const void* from, size_t bytes) override;
  std::string DescribeMemory() const override;

 private:
  enum class State : uint8_t { kOpen, kResting, kInUse, kGivenBack, kAbandoned };

  ~Arena() override = default;
  void* TakeFree(size_t size);
  void ForgetPassedOn();
  bool Done() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return state_ == State::kAbandoned && used_.empty() && passed_on_ == 0;
  }

  StreamDriver& driver_;
  DriverCapture* capture_;
  std::atomic<bool> refused_{false};
  mutable Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kOpen;
  flat_hash_map<void*, size_t> used_ ABSL_GUARDED_BY(mu_);
  std::multimap<size_t, void*> free_ ABSL_GUARDED_BY(mu_);
  size_t passed_on_ ABSL_GUARDED_BY(mu_) = 0;  // blocks in use that are not the arena's own
};

}  // namespace tenon
