// SPDX-License-Identifier: Apache-2.0
#include "distributed/clock.h"

#include <map>
#include <thread>

#include "core/mutex.h"

namespace tenon {
namespace {

class SteadyClock final : public Clock {
 public:
  Time Now() override { return std::chrono::steady_clock::now(); }

  void CallAfter(Duration delay, std::function<void()> callback) override {
    MutexLock lock(mu_);
    const Time when = Now() + delay;
    const bool first = pending_.empty() || when < pending_.begin()->first;
    pending_.emplace(when, std::move(callback));
    if (!started_) {
      started_ = true;
      std::thread([this] { Loop(); }).detach();
    } else if (first) {
      wake_.NotifyOne();
    }
  }

 private:
  void Loop() {
    while (true) {
      std::function<void()> callback;
      {
        MutexLock lock(mu_);
        while (pending_.empty()) wake_.Wait(mu_);
        const auto next = pending_.begin();
        if (next->first > Now()) {
          wake_.WaitUntil(mu_, next->first);
          continue;
        }
        callback = std::move(next->second);
        pending_.erase(next);
      }
      callback();
    }
  }

  Mutex mu_;
  CondVar wake_;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  std::multimap<Time, std::function<void()>> pending_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

Clock& SystemClock() {
  static auto* const clock = new SteadyClock;
  return *clock;
}

}  // namespace tenon
