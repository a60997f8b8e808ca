// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/executor.h"

#include <algorithm>

#include "runtime/execute/frame_state.h"
#include "runtime/execute/plan_run.h"

namespace tenon {
namespace {

/// One run in so many measures what its kernels cost.
constexpr uint32_t kMeasureEvery = 16;

}  // namespace

Executor::Executor(std::unique_ptr<ExecutionPlan> plan, ThreadPool* pool)
    : plan_(std::move(plan)),
      pool_(pool != nullptr && pool->num_threads() > 0 ? pool : nullptr),
      plain_states_(*plan_),
      frame_states_(*plan_) {
  for (const PlanNode& n : plan_->nodes()) {
    max_outputs_ = std::max<int>(max_outputs_, n.num_outputs);
  }
}

Executor::~Executor() = default;

template <typename State>
void Executor::RunWith(IdleStates<State>& idle, const PlanValues& values, bool borrowed,
                       std::function<void(Status)> done) {
  const bool measure = runs_.fetch_add(1, std::memory_order_relaxed) % kMeasureEvery == 0;
  const PlanParts<State> parts{*plan_, pool_, max_outputs_, idle};
  (new PlanRun<State>(parts, values, measure, std::move(done)))->Start(borrowed);
}

void Executor::Start(const DeviceRun& run, const std::vector<Tensor>& args,
                     std::vector<Tensor>* retvals, bool borrowed,
                     std::function<void(Status)> done) {
  if (Status s = CheckArguments(args, plan_->arg_types()); !s.ok()) {
    AbortRun(run.run, s);
    return done(s);
  }
  const PlanValues values{run, args, retvals};
  if (plan_->has_control_flow()) {
    RunWith(frame_states_, values, borrowed, std::move(done));
  } else {
    RunWith(plain_states_, values, borrowed, std::move(done));
  }
}

Status Executor::Run(const DeviceRun& run, const std::vector<Tensor>& args,
                     std::vector<Tensor>* retvals) {
  struct Waiter {
    Mutex mu;
    CondVar cv;
    bool over ABSL_GUARDED_BY(mu) = false;
    Status status ABSL_GUARDED_BY(mu);
  } waiter;
  Start(run, args, retvals, false, [&waiter](Status s) {
    MutexLock lock(waiter.mu);
    waiter.status = std::move(s);
    waiter.over = true;
    waiter.cv.NotifyOne();
  });
  MutexLock lock(waiter.mu);
  while (!waiter.over) waiter.cv.Wait(waiter.mu);
  return waiter.status;
}

}  // namespace tenon
