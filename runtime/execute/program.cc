// SPDX-License-Identifier: Apache-2.0
#include "runtime/execute/program.h"

#include <algorithm>
#include <atomic>

namespace tenon {
namespace {

/// No other run of a plan in the process has this number: what a device's queue keeps of a run goes
/// when that ends, and functions called in a run, other sessions and other tasks in the process may
/// be using the same GPU meanwhile.
int64_t NextDeviceRun() {
  static std::atomic<int64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

/// The plans of a program on their way: the first error, and how many still run.
struct PlanRuns {
  void Done(const Status& s) {
    {
      MutexLock lock(mu);
      status.Update(s);
    }
    if (running.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Status result;
    {
      MutexLock lock(mu);
      result = status;
    }
    const auto callback = std::move(done);
    delete this;
    callback(std::move(result));
  }

  std::vector<DeviceRun> runs;
  std::atomic<size_t> running;
  std::function<void(Status)> done;
  Mutex mu;
  Status status ABSL_GUARDED_BY(mu);
};

}  // namespace

Program::Program(std::vector<std::unique_ptr<ExecutionPlan>> plans, ThreadPool* pool,
                 std::shared_ptr<void> owner)
    : owner_(std::move(owner)) {
  for (std::unique_ptr<ExecutionPlan>& plan : plans) {
    num_retvals_ = std::max(num_retvals_, plan->retval_types().size());
    for (const PlanNode& n : plan->nodes()) has_transfers_ |= n.flow == FlowKind::kTransfer;
    executors_.push_back(std::make_unique<Executor>(std::move(plan), pool));
  }
}

Status Program::Execute(const ProgramRun& run, const std::vector<Tensor>& args,
                        std::vector<Tensor>* retvals) {
  if (executors_.size() == 1) {
    retvals->assign(num_retvals_, Tensor());
    Executor& executor = *executors_[0];
    return executor.Run({run, executor.plan().device(), NextDeviceRun()}, args, retvals);
  }
  Mutex mu;
  CondVar cv;
  bool over = false;
  Status status;
  StartAll(run, args, retvals, false, [&](Status s) {
    MutexLock lock(mu);
    status = std::move(s);
    over = true;
    cv.NotifyOne();
  });
  MutexLock lock(mu);
  while (!over) cv.Wait(mu);
  return status;
}

void Program::Start(const ProgramRun& run, const std::vector<Tensor>& args,
                    std::vector<Tensor>* retvals, std::function<void(Status)> done) {
  StartAll(run, args, retvals, true, std::move(done));
}

void Program::StartAll(const ProgramRun& run, const std::vector<Tensor>& args,
                       std::vector<Tensor>* retvals, bool borrowed,
                       std::function<void(Status)> done) {
  retvals->assign(num_retvals_, Tensor());
  if (executors_.empty()) return done(OkStatus());
  auto* const all = new PlanRuns{{}, executors_.size(), std::move(done), {}, {}};
  all->runs.reserve(executors_.size());
  for (const auto& executor : executors_) {
    all->runs.push_back({run, executor->plan().device(), NextDeviceRun()});
  }
  // The program may be gone when its last plan has been started. Each fetch is of one plan, which
  // alone writes its place in `retvals`.
  const size_t last = executors_.size() - 1;
  for (size_t i = 0; i <= last; ++i) {
    executors_[i]->Start(all->runs[i], args, retvals, borrowed || i < last,
                         [all](const Status& s) { all->Done(s); });
  }
}

}  // namespace tenon
