// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "core/base/clock.h"

namespace tenon::testing {

/// A clock whose time passes only while somebody waits by it: the calls that are due are made on
/// the waiting thread, in the order of their times and, at one time, of their making. A test of one
/// thread says with CallAfter what is to happen when, and waits hours within a moment. Thread-safe,
/// but when several threads wait, each makes time pass.
class SimulatedClock final : public Clock {
 public:
  Time Now() override {
    MutexLock lock(mu_);
    return now_;
  }
  WallTime WallNow() override {
    return WallTime(std::chrono::duration_cast<WallTime::duration>(Now().time_since_epoch()));
  }
  Timer CallAfter(Duration delay, std::function<void()> callback) override {
    MutexLock lock(mu_);
    const Timer timer = ++last_timer_;
    pending_.emplace(std::pair(now_ + delay, timer), std::move(callback));
    when_.emplace(timer, now_ + delay);
    return timer;
  }
  void CancelTimer(Timer timer) override {
    std::function<void()> dying;  // declared first: dies outside the lock
    MutexLock lock(mu_);
    const auto found = when_.find(timer);
    if (found == when_.end()) return;
    const auto pending = pending_.find({found->second, timer});
    dying = std::move(pending->second);
    pending_.erase(pending);
    when_.erase(found);
  }
  bool WaitUntil(CondVar& changed, Mutex& mu, Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    (void)changed;  // whoever could notify it runs in the meantime
    mu.Unlock();
    const bool ran = RunNext(deadline);
    mu.Lock();
    return ran;
  }
  void SleepUntil(Time time) override {
    while (RunNext(time)) {
    }
  }

  /// Makes the next call of those that are due by `limit`; when there is none, it is `limit` now,
  /// and the result is false.
  bool RunNext(Time limit) {
    std::function<void()> callback;
    {
      MutexLock lock(mu_);
      const auto next = pending_.begin();
      if (next == pending_.end() || next->first.first > limit) {
        now_ = std::max(now_, limit);
        return false;
      }
      now_ = std::max(now_, next->first.first);
      callback = std::move(next->second);
      when_.erase(next->first.second);
      pending_.erase(next);
    }
    callback();
    return true;
  }

 private:
  Mutex mu_;
  /// It does not begin at zero: a time of zero means in some places that there was none.
  Time now_ ABSL_GUARDED_BY(mu_){std::chrono::hours(1)};
  Timer last_timer_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::pair<Time, Timer>, std::function<void()>> pending_ ABSL_GUARDED_BY(mu_);
  std::map<Timer, Time> when_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon::testing
