// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "core/base/cancellation.h"

// How a kernel at work hears that nobody wants its result any more. The executor says of each
// thread whose step it runs kernels of; ParallelFor and SerialFor stop between two chunks of a loop
// when that step is cancelled, and loops of other kinds ask by themselves. A kernel that stopped so
// may return anything: the executor drops its outputs and ends the step with the cancellation's
// status.

namespace tenon {

namespace interruption_internal {
inline constinit thread_local const Cancellation* current = nullptr;
}  // namespace interruption_internal

/// What may interrupt the kernels of the calling thread, or null.
inline const Cancellation* CurrentInterruption() { return interruption_internal::current; }

/// Whether the kernel that the calling thread runs should stop. Costs a few instructions.
inline bool Interrupted() {
  const Cancellation* const current = CurrentInterruption();
  return current != nullptr && current->cancelled();
}

/// Steps of a loop, each of which costs some ns, between two looks.
inline constexpr int64_t kStepsBetweenLooks = 1 << 12;

/// While it lives, `cancellation` is what interrupts the kernels of the calling thread. Null: they
/// run to their end, as an update of state must, of which nobody may see a part.
class InterruptibleBy {
 public:
  explicit InterruptibleBy(const Cancellation* cancellation)
      : before_(std::exchange(interruption_internal::current, cancellation)) {}
  ~InterruptibleBy() { interruption_internal::current = before_; }
  InterruptibleBy(const InterruptibleBy&) = delete;
  InterruptibleBy& operator=(const InterruptibleBy&) = delete;

 private:
  const Cancellation* const before_;
};

}  // namespace tenon
