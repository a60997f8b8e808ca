// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "core/base/cancellation.h"
#include "runtime/device/machine_clock.h"

namespace tenon {

/// While it lives, `cancellation` is cancelled with `why` when `limit` has passed.
class TimeLimit {
 public:
  /// `cancellation` and `clock` must outlive it.
  TimeLimit(Cancellation& cancellation, std::chrono::milliseconds limit, Status why,
            Clock& clock = MachineClock())
      : clock_(clock),
        link_(expired_.get(), cancellation),
        timer_(clock.CallAfter(
            limit, [expired = expired_, why = std::move(why)] { expired->Cancel(why); })) {}
  ~TimeLimit() { clock_.CancelTimer(timer_); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  Clock& clock_;
  /// The clock's call may have begun when the limit goes: it holds this, and the link waits for it.
  const std::shared_ptr<Cancellation> expired_ = std::make_shared<Cancellation>();
  const CancellationLink link_;
  const Clock::Timer timer_;
};

}  // namespace tenon
