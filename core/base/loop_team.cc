// SPDX-License-Identifier: Apache-2.0
#include "core/base/loop_team.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include "core/base/mutex.h"

namespace tenon::parallel_internal {
namespace {

/// How long a helper stays awake after a loop.
constexpr int64_t kAwakeNs = 200'000;
/// Work that is worth waking somebody for, even where no other loop has been near.
constexpr double kWorthWakingNs = 150e3;
/// The least work for each thread, the caller's and those that are woken.
constexpr double kShareNs = 100e3;
/// Work for which a helper that comes late is soon enough: also one that is to be left asleep.
constexpr double kLongNs = 1e6;
/// A yield of the processor that took so long gave it to somebody who computes.
constexpr int64_t kTurnOfOthersNs = 50'000;
/// How long a caller waits awake for a helper's part. Twice the guess of a part more, and the
/// helper has lost its core.
constexpr int64_t kLongWaitNs = 200'000;
/// How long a helper is left asleep that came too late, or whose core others want: twice as long
/// each time, and a little less after each loop that it was there for.
constexpr int64_t kShortPauseNs = 8'000'000, kLongPauseNs = 256'000'000;
constexpr int kMostHelpers = 255;

/// The machine's time also where a simulation has a Clock of its own: how long others keep a core
/// is a matter of this machine.
int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Parts of a loop, of which each thread takes the next.
class SharedLoop {
 public:
  SharedLoop(int parts, absl::FunctionRef<void(int part)> fn)
      : parts_(parts), fn_(fn), float_control_(_mm_getcsr()) {}

  void TakeParts() {
    for (int part; (part = next_.fetch_add(1, std::memory_order_relaxed)) < parts_;) fn_(part);
  }
  bool all_taken() const { return next_.load(std::memory_order_relaxed) >= parts_; }
  unsigned float_control() const { return float_control_; }

 private:
  std::atomic<int> next_{0};
  const int parts_;
  const absl::FunctionRef<void(int part)> fn_;
  const unsigned float_control_;
};

/// Which helpers are woken for a loop.
enum class Wake { kNobody, kRested, kAll };

/// One thread. Its state and the number of the loop that it was last given are one word, so that
/// the giver of a loop does not take a later giver's loop for its own.
class alignas(64) Helper {
 public:
  Helper() {
    std::thread([this] { Live(); }).detach();
  }

  /// Gives the loop to the helper if that is free and awake, or may be woken. Returns the number by
  /// which TakeBack knows it, or 0.
  uint32_t Give(SharedLoop& loop, Wake wake) {
    uint32_t word = word_.load(std::memory_order_relaxed);
    const uint32_t state = word & kStates;
    if (state == kAsleep ? wake == Wake::kNobody || (wake == Wake::kRested && resting())
                         : state != kAwake) {
      return 0;
    }
    uint32_t number = (word & ~kStates) + kOne;
    if (number == 0) number = kOne;
    if (!word_.compare_exchange_strong(word, number | kChosen, std::memory_order_acquire)) return 0;
    loop_ = &loop;
    word_.store(number | kGiven, std::memory_order_release);
    // The exchange above has changed the word, in the sight of a helper that falls asleep.
    if (state == kAsleep) word_.notify_all();
    return number;
  }

  /// Whether the helper is not to be woken now.
  bool resting() const {
    return (word_.load(std::memory_order_relaxed) & kStates) == kAsleep &&
           NowNs() < paused_until_.load(std::memory_order_relaxed);
  }

  /// Returns when the helper neither works on the loop nor will. False when it never began.
  bool TakeBack(uint32_t number, double part_ns) {
    uint32_t word = number | kGiven;
    if (word_.compare_exchange_strong(word, number | kAwake, std::memory_order_acquire)) {
      Pause();
      return false;
    }
    const int64_t begin = NowNs();
    int64_t waited = 0;
    for (int i = 0; word == (number | kAtWork); ++i) {
      _mm_pause();
      if (i % 64 == 63) {
        waited = NowNs() - begin;
        if (waited > kLongWaitNs) {
          word_.wait(word, std::memory_order_acquire);
          waited = NowNs() - begin;
        } else {
          sched_yield();
        }
      }
      word = word_.load(std::memory_order_acquire);
    }
    if (static_cast<double>(waited) > kLongWaitNs + 2 * part_ns) {
      Pause();
    } else {
      const int64_t pause = pause_.load(std::memory_order_relaxed);
      const int64_t shorter = std::max(kShortPauseNs, pause - pause / 8);
      if (shorter != pause) pause_.store(shorter, std::memory_order_relaxed);
    }
    return true;
  }

 private:
  enum State : uint32_t { kAsleep, kAwake, kChosen, kGiven, kAtWork };
  static constexpr uint32_t kStates = 7, kOne = 8;

  [[noreturn]] void Live() {
    for (;;) {
      const uint32_t number = AwaitLoop();
      _mm_setcsr(loop_->float_control());
      loop_->TakeParts();
      // A plain store might be seen after notify_all has looked whether somebody waits.
      word_.exchange(number | kAwake);
      word_.notify_all();
    }
  }

  /// The number of the next loop, at which the helper is at work on return.
  uint32_t AwaitLoop() {
    int64_t since = NowNs();
    for (int i = 0;; ++i) {
      uint32_t word = word_.load(std::memory_order_relaxed);
      if ((word & kStates) == kGiven) {
        const uint32_t number = word & ~kStates;
        if (word_.compare_exchange_strong(word, number | kAtWork, std::memory_order_acquire)) {
          return number;
        }
      }
      _mm_pause();
      if (i % 32 != 31 || (word & kStates) != kAwake) continue;
      const int64_t before = NowNs();
      if (before - since <= kAwakeNs) {
        sched_yield();
        if (NowNs() - before <= kTurnOfOthersNs) continue;
        Pause();
      }
      const uint32_t asleep = (word & ~kStates) | kAsleep;
      if (word_.compare_exchange_strong(word, asleep, std::memory_order_relaxed)) {
        word_.wait(asleep, std::memory_order_relaxed);
      }
      since = NowNs();
    }
  }

  void Pause() {
    const int64_t pause = pause_.load(std::memory_order_relaxed);
    paused_until_.store(NowNs() + pause, std::memory_order_relaxed);
    pause_.store(std::min(2 * pause, kLongPauseNs), std::memory_order_relaxed);
  }

  std::atomic<uint32_t> word_{kAwake};
  SharedLoop* loop_ = nullptr;  // of who has made the word kChosen, until it is kAwake again
  // Guesses, which may be mixed up.
  std::atomic<int64_t> paused_until_{0}, pause_{kShortPauseNs};
};

/// The helpers of the process, as many as there have ever been at work at once. Never destroyed:
/// their threads end with the process.
class Helpers {
 public:
  static Helpers& Get() {
    static Helpers* const helpers = new Helpers;
    return *helpers;
  }

  int size() const { return size_.load(std::memory_order_acquire); }
  Helper& operator[](int i) { return *helpers_[i]; }

  /// False when there are as many as may be, or the system gives no thread.
  bool Add() {
    MutexLock lock(mu_);
    const int size = size_.load(std::memory_order_relaxed);
    if (size >= kMostHelpers) return false;
    try {
      helpers_[size] = std::make_unique<Helper>();
    } catch (const std::exception&) {  // no thread, or no memory
      return false;
    }
    size_.store(size + 1, std::memory_order_release);
    return true;
  }

 private:
  Mutex mu_;
  std::atomic<int> size_{0};
  std::array<std::unique_ptr<Helper>, kMostHelpers> helpers_;  // grows under mu_
};

/// When the last loop that could be shared ended.
std::atomic<int64_t> last_loop_ns{0};

}  // namespace

void RunParts(int parts, int helpers, double part_ns, absl::FunctionRef<void(int part)> fn) {
  struct Lent {
    Helper* helper;
    uint32_t number;
  };
  helpers = std::min({helpers, parts - 1, kMostHelpers});
  SharedLoop loop(parts, fn);
  std::array<Lent, kMostHelpers> lent;
  int num_lent = 0;
  Helpers& all = Helpers::Get();
  const auto give = [&](int most, Wake wake) {
    for (int i = 0; i < all.size() && num_lent < most && !loop.all_taken(); ++i) {
      if (const uint32_t number = all[i].Give(loop, wake)) lent[num_lent++] = {&all[i], number};
    }
  };
  give(helpers, Wake::kNobody);
  const double total_ns = part_ns * parts;
  // A loop that follows another one soon is of a step, and the next ones will find who is woken.
  if (num_lent < helpers && (total_ns >= kWorthWakingNs ||
                             NowNs() - last_loop_ns.load(std::memory_order_relaxed) < kAwakeNs)) {
    const int wanted =
        std::clamp(static_cast<int>(std::min(total_ns / kShareNs, 1e3)) - 1, 1, helpers);
    give(wanted, total_ns >= kLongNs ? Wake::kAll : Wake::kRested);
    int resting = 0;
    for (int i = 0; i < all.size(); ++i) resting += all[i].resting() ? 1 : 0;
    for (int lacking = wanted - num_lent - resting; lacking > 0 && !loop.all_taken(); --lacking) {
      if (!all.Add()) break;
      give(wanted, Wake::kNobody);
    }
  }
  loop.TakeParts();
  for (int i = 0; i < num_lent; ++i) lent[i].helper->TakeBack(lent[i].number, part_ns);
  last_loop_ns.store(NowNs(), std::memory_order_relaxed);
}

int NumHelpers() { return Helpers::Get().size(); }

}  // namespace tenon::parallel_internal
