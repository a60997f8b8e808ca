// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/op/kernel.h"
#include "runtime/device/thread_pool.h"
#include "runtime/execute/plain_state.h"
#include "runtime/execute/plan.h"
#include "runtime/execute/trace.h"

namespace tenon {

class FrameState;
struct PlanValues;

/// Runs the nodes of a plan, each as soon as its inputs are there. The thread that waits for a step
/// works on it; nodes that take long are handed to the pool when there are several at once. Threads
/// that only start a step, or finish one of its asynchronous kernels, run what is quick and leave
/// the rest to the pool, whose threads they share in turns. Thread-safe: any number of steps may
/// run at once.
///
/// The first error ends the step: the step's rendezvous and cancellation get it, no further kernel
/// starts, and the step is over when those that run have returned.
class Executor {
 public:
  /// `pool` may be null: then a step uses the starting thread, and those that finish asynchronous
  /// kernels. It must outlive the executor.
  Executor(std::unique_ptr<ExecutionPlan> plan, ThreadPool* pool);
  /// REQUIRES: no step is running.
  ~Executor();

  const ExecutionPlan& plan() const { return *plan_; }

  /// Runs the plan to its end. `args` has one tensor for each _Arg index of the plan, of its dtype;
  /// `retvals`, which may be null where the plan has no _Retval, one place for each _Retval index.
  /// Both may have more, which are other plans' of the program.
  Status Run(const DeviceRun& run, const std::vector<Tensor>& args, std::vector<Tensor>* retvals);
  /// Starts it; `done` is called at its end, perhaps before this returns. The other arguments must
  /// live until then. `borrowed`: the calling thread has other work, and is used for about 100 µs
  /// at most where there is a pool.
  void Start(const DeviceRun& run, const std::vector<Tensor>& args, std::vector<Tensor>* retvals,
             bool borrowed, std::function<void(Status)> done);

 private:
  template <typename State>
  void RunWith(IdleStates<State>& idle, const PlanValues& values, bool borrowed,
               std::function<void(Status)> done);

  const std::unique_ptr<ExecutionPlan> plan_;
  ThreadPool* const pool_;
  int max_outputs_ = 0;
  IdleStates<PlainState> plain_states_;
  IdleStates<FrameState> frame_states_;
  std::atomic<uint32_t> runs_{0};
};

}  // namespace tenon
