// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/running_calls.h"

#include <vector>

namespace tenon {

Status RunningCalls::AddStep(Cancellation* step) {
  MutexLock lock(mu_);
  TENON_RETURN_IF_ERROR(closed_);
  steps_.insert(step);
  return OkStatus();
}

void RunningCalls::RemoveStep(Cancellation* step) {
  MutexLock lock(mu_);
  steps_.erase(step);
  if (steps_.empty()) no_steps_.NotifyAll();
}

Status RunningCalls::BeginFunction() {
  MutexLock lock(functions_mu_);
  TENON_RETURN_IF_ERROR(functions_closed_);
  ++functions_;
  return OkStatus();
}

void RunningCalls::EndFunction() {
  MutexLock lock(functions_mu_);
  if (--functions_ == 0) no_functions_.NotifyAll();
}

Status RunningCalls::CheckOpen() {
  MutexLock lock(mu_);
  return closed_;
}

void RunningCalls::CloseAndWait(const Status& why, const Status& closed) {
  {
    MutexLock lock(functions_mu_);
    functions_closed_ = closed;
  }
  {
    MutexLock lock(mu_);
    closed_ = closed;
    // A step leaves the set only under the lock, so every pointer in it is good.
    const std::vector<Cancellation*> steps(steps_.begin(), steps_.end());
    for (Cancellation* step : steps) step->Cancel(why);
  }
  closing_.Cancel(why);
  {
    MutexLock lock(mu_);
    while (!steps_.empty()) no_steps_.Wait(mu_);
  }
  MutexLock lock(functions_mu_);
  while (functions_ > 0) no_functions_.Wait(functions_mu_);
}

}  // namespace tenon
