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

#include "core/base/mutex.h"
#include "runtime/accelerator/stream_driver.h"

namespace tenon::testing {

/// An accelerator made of one thread, which finds what programs for real ones get wrong. Its memory
/// cannot be touched by the host; it does what is queued late, in an order drawn from a seed among
/// those that the streams allow; memory is filled with NaNs when it is given out and taken back.
/// The clocks of streams and host tell whether something orders two accesses to the same memory,
/// however they happened to follow each other, and on whichever devices of the process.
///
/// What is wrong is reported through every callback from then on, as a driver's error is: of the
/// device whose memory it is about.
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
  void CopyToPeer(Stream stream, StreamDriver& peer, Stream other, void* to, const void* from,
                  size_t bytes) override;
  void WaitFor(Stream stream, Stream other) override;
  void CallWhenDone(Stream stream, std::function<void(const Status&)> done) override;
  StatusOr<std::unique_ptr<DriverCapture>> Capture() override;
  void* Native(Stream) override { return this; }

  /// Memory of the device that some work reads or writes.
  struct Access {
    const void* memory;
    size_t bytes;
    bool writes;
  };
  /// Queues work, which reaches the memory through OnDevice. On a thread that captures it becomes
  /// part of the capture.
  void Launch(Stream stream, std::vector<Access> accesses, std::function<void()> work);

  /// Does all that is queued before it returns, even on the device's own thread. What is being
  /// recorded cannot be waited for: false, and it is no capture any more.
  bool RunAll();

  /// Whether it points into the device's memory.
  bool Contains(const void* memory) const;
  /// What the device finds at that address of its memory.
  void* OnDevice(const void* memory) const;

  /// What has been found wrong so far; OK when nothing.
  Status status() const;
  int64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  /// How often captures have been queued.
  int64_t repeats() const { return repeats_.load(std::memory_order_relaxed); }

 private:
  class Captured;
  /// What the calling thread records, or null.
  static Captured*& OfThread();
  static constexpr int kStreams = 3;
  /// How many pieces of work of each stream come before something, by the streams' numbers in the
  /// process.
  class VectorClock {
   public:
    uint64_t operator[](size_t stream) const { return stream < times_.size() ? times_[stream] : 0; }
    void Set(size_t stream, uint64_t time) {
      if (stream >= times_.size()) times_.resize(stream + 1);
      times_[stream] = time;
    }
    void Join(const VectorClock& other);
    /// A stream that has come further there than here, or -1.
    int FirstBefore(const VectorClock& there) const;

   private:
    std::vector<uint64_t> times_;
  };
  /// What the host has seen, of all devices.
  struct HostClock;
  static HostClock& Host();
  struct Event {
    std::atomic<bool> reached{false};
    VectorClock clock;                      // once it is reached
    SimulatedDriver* awaited_by = nullptr;  // another one
  };
  struct Item {
    VectorClock host;  // when it was queued
    std::shared_ptr<Event> waits, records;
    std::vector<Access> accesses;
    std::function<void()> work;
    std::function<void(const Status&)> done;
  };
  struct Block {
    size_t bytes = 0;
    bool written = false;
    int writer = 0;  // the stream that wrote last, by its number, and when
    uint64_t write_time = 0;
    VectorClock read_times;
  };

  static int Index(Stream stream) { return static_cast<int>(stream); }
  int Number(int stream) const { return first_number_ + stream; }
  /// For messages: a stream by its number.
  std::string NameOf(int number) const;
  /// Somebody waits for it elsewhere: it is not to be put off.
  static bool IsUrgent(const Item& item) {
    return item.done != nullptr || (item.records != nullptr && item.records->awaited_by != nullptr);
  }
  void Enqueue(Stream stream, Item item);
  void Run();
  bool HasReason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool CanRun(int stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// What is queued waits for another device, if anything is.
  bool WaitsForPeer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// False when nothing can run.
  bool RunOne();
  void RunItem(int stream);
  /// `stream` is the number of one of any device's.
  void CheckAccess(const Access& access, int stream, const VectorClock& clock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CheckEnds(const Access& access) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Null when there is none.
  std::pair<const uintptr_t, Block>* BlockOf(const void* memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(void* memory, size_t bytes, const VectorClock& clock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fault(std::string what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int first_number_;  // of its streams
  const size_t size_;
  char* memory_ = nullptr;  // which the host must not touch
  char* alias_ = nullptr;   // the same memory as the device sees it
  std::atomic<int64_t> launches_{0};
  std::atomic<int64_t> repeats_{0};

  mutable Mutex mu_;
  CondVar cv_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
  std::array<std::deque<Item>, kStreams> queues_ ABSL_GUARDED_BY(mu_);
  std::array<VectorClock, kStreams> clocks_ ABSL_GUARDED_BY(mu_);
  std::map<uintptr_t, Block> blocks_ ABSL_GUARDED_BY(mu_);
  std::map<uintptr_t, size_t> free_ ABSL_GUARDED_BY(mu_);
  std::set<void*> pinned_ ABSL_GUARDED_BY(mu_);
  Status status_ ABSL_GUARDED_BY(mu_);
  int urgent_ ABSL_GUARDED_BY(mu_) = 0;  // of what is queued
  size_t patience_ ABSL_GUARDED_BY(mu_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace tenon::testing
