// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

namespace tenon {

/// The time that distributed code waits by. A real one for servers; simulations have their own.
/// Thread-safe.
class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  virtual ~Clock() = default;
  virtual Time Now() = 0;
  /// Calls `callback` once after `delay`, from a thread of the clock's; it must not block.
  virtual void CallAfter(Duration delay, std::function<void()> callback) = 0;
};

/// The machine's steady clock. Lives until the process ends; has one thread, from the first
/// CallAfter on.
Clock& SystemClock();

}  // namespace tenon
