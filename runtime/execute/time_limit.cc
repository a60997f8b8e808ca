// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/time_limit.h"

#include <utility>

namespace tenon {

TimeLimit::TimeLimit(Cancellation& cancellation, std::chrono::milliseconds limit, Status why)
    : cancellation_(cancellation),
      why_(std::move(why)),
      thread_([this, end = std::chrono::steady_clock::now() + limit] { Wait(end); }) {}

TimeLimit::~TimeLimit() {
  {
    MutexLock lock(mu_);
    over_ = true;
    cv_.NotifyOne();
  }
  thread_.join();
}

void TimeLimit::Wait(std::chrono::steady_clock::time_point end) {
  {
    MutexLock lock(mu_);
    while (!over_ && cv_.WaitUntil(mu_, end)) {
    }
    if (over_) return;
  }
  cancellation_.Cancel(why_);
}

}  // namespace tenon
