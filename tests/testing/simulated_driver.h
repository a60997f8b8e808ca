// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "runtime/accelerator/stream_driver.h"

namespace tenon::testing {

/// An accelerator made of one thread, which finds what programs for real ones get wrong. Its memory
/// cannot be touched by the host; it does what is queued late, in an order drawn from a seed among
/// those that the streams allow; memory is filled with NaNs when it is given out and taken back.
/// The clocks of streams and host tell whether something orders two accesses to the same memory,
/// however they happened to follow each other.
///
/// What is wrong is reported through every callback from then on, as a driver's error is.
class SimulatedDriver final : public StreamDriver {
 public:
  explicit SimulatedDriver(uint64_t seed, size_t memory_bytes = size_t{4} << 30);
  /// Does what is still queued.
  ~SimulatedDriver() override;

  void* Allocate(Stream stream, size_t bytes) override;
  void Free(void* memory, size_t bytes) override;
  void* AllocatePinned(size_t bytes) override;
  void FreePinned(void* memory, size_t bytes) override;
  void Copy(Stream stream, void* to, const void* from, size_t bytes) override;
  void WaitFor(Stream stream, Stream other) override;
  void CallWhenDone(Stream stream, std::function<void(const Status&)> done) override;
  StatusOr<std::unique_ptr<DriverRecording>> Record() override;
  void* Native(Stream) override { return this; }

  /// Memory of the device that some work reads or writes.
  struct Access {
    const void* memory;
    size_t bytes;
    bool writes;
  };
  /// Queues work, which reaches the memory through OnDevice. On a thread that records it becomes
  /// part of the recording.
  void Launch(Stream stream, std::vector<Access> accesses, std::function<void()> work);

  /// Does all that is queued before it returns, even on the device's own thread. What is being
  /// recorded cannot be waited for: false, and it is no recording any more.
  bool RunAll();

  /// Whether it points into the device's memory.
  bool Contains(const void* memory) const;
  /// What the device finds at that address of its memory.
  void* OnDevice(const void* memory) const;

  /// What has been found wrong so far; OK when nothing.
  Status status() const;
  int64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  /// How often recordings have been queued.
  int64_t repeats() const { return repeats_.load(std::memory_order_relaxed); }

 private:
  class Recording;
  /// What the calling thread records, or null.
  static Recording*& OfThread();
  static constexpr int kStreams = 3, kHost = kStreams;
  /// How many pieces of work of each stream, and of what the host has seen, come before something.
  using Clock = std::array<uint64_t, kStreams + 1>;
  struct Event {
    bool reached = false;
    Clock clock{};
  };
  struct Item {
    Clock host{};  // when it was queued
    std::shared_ptr<Event> waits, records;
    std::vector<Access> accesses;
    std::function<void()> work;
    std::function<void(const Status&)> done;
  };
  struct Block {
    size_t bytes = 0;
    bool written = false;
    int writer = 0;  // the stream that wrote last, and when
    uint64_t write_time = 0;
    std::array<uint64_t, kStreams> read_times{};
  };

  static int Index(Stream stream) { return static_cast<int>(stream); }
  void Enqueue(Stream stream, Item item);
  void Run();
  bool HasReason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool CanRun(int stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// False when nothing can run.
  bool RunOne();
  void RunItem(int stream);
  void CheckAccess(const Access& access, int stream, const Clock& clock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CheckEnds(const Access& access) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Null when there is none.
  std::pair<const uintptr_t, Block>* BlockOf(const void* memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(void* memory, size_t bytes, const Clock& clock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fault(std::string what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t size_;
  char* memory_ = nullptr;  // which the host must not touch
  char* alias_ = nullptr;   // the same memory as the device sees it
  std::atomic<int64_t> launches_{0};
  std::atomic<int64_t> repeats_{0};

  mutable Mutex mu_;
  CondVar cv_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
  std::array<std::deque<Item>, kStreams> queues_ ABSL_GUARDED_BY(mu_);
  std::array<Clock, kStreams> clocks_ ABSL_GUARDED_BY(mu_) = {};
  Clock host_ ABSL_GUARDED_BY(mu_) = {};
  std::map<uintptr_t, Block> blocks_ ABSL_GUARDED_BY(mu_);
  std::map<uintptr_t, size_t> free_ ABSL_GUARDED_BY(mu_);
  std::set<void*> pinned_ ABSL_GUARDED_BY(mu_);
  Status status_ ABSL_GUARDED_BY(mu_);
  int callbacks_ ABSL_GUARDED_BY(mu_) = 0;  // queued
  size_t patience_ ABSL_GUARDED_BY(mu_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace tenon::testing
