// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace tenon {

/// The time that distributed code waits by. A real one for servers; simulations have their own.
/// Thread-safe.
class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  /// Names a call that is to come; 0 is none.
  using Timer = uint64_t;

  virtual ~Clock() = default;
  virtual Time Now() = 0;
  /// Calls `callback` once after `delay`, from a thread of the clock's; it must not block.
  virtual Timer CallAfter(Duration delay, std::function<void()> callback) = 0;
  /// Forgets a call that has not begun; what it holds is released at once. Others are ignored.
  virtual void CancelTimer(Timer timer) = 0;
};

/// The machine's steady clock. Lives until the process ends; has one thread, from the first
/// CallAfter on.
Clock& SystemClock();

}  // namespace tenon
