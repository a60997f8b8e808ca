// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "core/base/mutex.h"

namespace tenon {

/// The one way by which the project learns the time and waits for it. Programs have the machine's
/// clock (MachineClock), tests and simulations one of their own. Thread-safe.
class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = Time::duration;
  using WallTime = std::chrono::system_clock::time_point;
  /// The name of a call that is to come; 0 is none.
  using Timer = uint64_t;

  virtual ~Clock() = default;
  /// The time that limits, pauses and measurements are of: it never goes back.
  virtual Time Now() = 0;
  /// The time of day, which people may set: for what is written into files and traces.
  virtual WallTime WallNow() = 0;
  /// Calls `callback` once after `delay`, without any lock of the clock's, on a thread of the
  /// clock's; it must not block.
  virtual Timer CallAfter(Duration delay, std::function<void()> callback) = 0;
  /// Forgets a call that has not begun; what it holds is released at once. Other names are ignored:
  /// a call that has begun may still be running.
  virtual void CancelTimer(Timer timer) = 0;
  /// Waits for a notification of `changed`, as CondVar::Wait does, until `deadline`. False when
  /// that passed first.
  virtual bool WaitUntil(CondVar& changed, Mutex& mu, Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;
  virtual void SleepUntil(Time time) = 0;
  void SleepFor(Duration pause) { SleepUntil(Now() + pause); }
};

}  // namespace tenon
