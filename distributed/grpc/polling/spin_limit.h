// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "core/base/clock.h"
#include "runtime/device/machine_clock.h"

namespace tenon {

/// How long a thread that waits for messages asks for them again and again before it sleeps. To be
/// woken takes 30 to 90 µs on a virtual machine, as long as a message itself. The limit is long
/// where messages have come soon, and nothing where they have not or others need the processor. For
/// one thread at a time.
///
/// Source: the halt polling of Linux' KVM.
class SpinLimit {
 public:
  /// Whoever has given the processor away for so long has given it to somebody who computes, and
  /// not to another one that only waits.
  static constexpr std::chrono::milliseconds kTurnOfOthers{1};

  Clock::Duration At(Clock::Time now) const { return now < paused_until_ ? kNone : limit_; }

  /// Learns from a wait that has come to its end, with or without sleep.
  void Learn(Clock::Duration waited) {
    if (waited >= kMost) {
      limit_ = kNone;
    } else if (waited > limit_) {
      limit_ = std::clamp<Clock::Duration>(2 * limit_, kLeast, kMost);
    } else if (waited > kNone) {
      pause_ = std::max<Clock::Duration>(pause_ - pause_ / 8, kShortPause);
    }
  }
  /// Others have had their turn: they come first for a while, the longer the more often.
  void MakeWay(Clock::Time now) {
    paused_until_ = now + pause_;
    pause_ = std::min<Clock::Duration>(2 * pause_, kLongPause);
  }

 private:
  static constexpr Clock::Duration kNone{0};
  static constexpr std::chrono::microseconds kLeast{50}, kMost{1000};
  static constexpr std::chrono::milliseconds kShortPause{5}, kLongPause{1000};

  Clock::Duration limit_ = kNone, pause_ = kShortPause;
  Clock::Time paused_until_;
};

/// Waits by asking again and again for as long as `limit` has it, and by `sleep`, which gives what
/// comes, after that. What both return is true when something has come.
template <typename Ask, typename Sleep>
bool WaitAwake(SpinLimit& limit, Ask ask, Sleep sleep) {
  const Clock::Time begin = MachineClock().Now();
  const Clock::Duration longest = limit.At(begin);
  for (Clock::Time now = begin; now - begin < longest;) {
    if (ask()) {
      limit.Learn(now - begin);
      return true;
    }
    const Clock::Time before = MachineClock().Now();
    sched_yield();
    now = MachineClock().Now();
    if (now - before >= SpinLimit::kTurnOfOthers) {
      limit.MakeWay(now);
      break;
    }
  }
  const bool has_come = sleep();
  limit.Learn(MachineClock().Now() - begin);
  return has_come;
}

}  // namespace tenon
