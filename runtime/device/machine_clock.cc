// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/machine_clock.h"

#include <map>
#include <thread>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"

namespace tenon {

/// Not in an unnamed namespace: CondVar lets this class alone wait with a limit.
class SteadyClock final : public Clock {
 public:
  Time Now() override { return std::chrono::steady_clock::now(); }
  WallTime WallNow() override { return std::chrono::system_clock::now(); }
  bool WaitUntil(CondVar& changed, Mutex& mu, Time deadline) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return changed.WaitUntil(mu, deadline);
  }
  void SleepUntil(Time time) override { std::this_thread::sleep_until(time); }

  Timer CallAfter(Duration delay, std::function<void()> callback) override {
    MutexLock lock(mu_);
    if (!started_) {
      std::thread([this] { Loop(); }).detach();  // throws when the system has none to give
      started_ = true;
    }
    const Key key{Now() + delay, ++last_timer_};
    const bool first = pending_.empty() || key < pending_.begin()->first;
    pending_.emplace(key, std::move(callback));
    when_.emplace(key.second, key.first);
    if (first) wake_.NotifyOne();
    return key.second;
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

 private:
  using Key = std::pair<Time, Timer>;

  void Loop() {
    while (true) {
      std::function<void()> callback;
      {
        MutexLock lock(mu_);
        while (pending_.empty()) wake_.Wait(mu_);
        const auto next = pending_.begin();
        if (const Time when = next->first.first; when > Now()) {
          wake_.WaitUntil(mu_, when);
          continue;
        }
        callback = std::move(next->second);
        when_.erase(next->first.second);
        pending_.erase(next);
      }
      callback();
    }
  }

  Mutex mu_;
  CondVar wake_;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  Timer last_timer_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<Key, std::function<void()>> pending_ ABSL_GUARDED_BY(mu_);
  flat_hash_map<Timer, Time> when_ ABSL_GUARDED_BY(mu_);  // of those pending
};

Clock& MachineClock() {
  static auto* const clock = new SteadyClock;
  return *clock;
}

}  // namespace tenon
