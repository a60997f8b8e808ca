// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/partial_graph.h"

#include "distributed/worker/step_stats.h"

namespace tenon {
namespace {

Status NothingToReceive() { return NotFound("the step has ended without what was asked for"); }

}  // namespace

Status DeadFetch(const RunGraphCall& call, size_t number) {
  return Internal("Failed to fetch outputs for step ", call.step_id, ". (", call.recv_keys[number],
                  " was not valid.)");
}

struct PartialGraph::Call {
  RunGraphCall* call;
  Cancellation* cancellation;
  WorkerInterface::Done done;  // null when it has been called
  Cancellation::Token token = Cancellation::kAlreadyCancelled;
  // These are guarded by the graph's mutex, as `done` is.
  size_t receives = 0;     // that wait
  bool all_begun = false;  // the receives
  Status status = {};
};

void PartialGraph::Start(std::shared_ptr<TaskRun> step, std::function<void()> over) {
  over_ = std::move(over);
  step_ = std::move(step);
  run_ = step_->MakeRun(settings_, cancellation_, memory_.get(), &trace_, groups_);
  cancellation_.Register([weak = std::weak_ptr<TaskRun>(step_)](const Status& why) {
    if (const auto aborted = weak.lock()) aborted->Abort(why);
  });
  // Kernels that wait for something else than a tensor of the step are to end with it, too.
  step_->OnAbort([weak = weak_from_this()](const Status& why) {
    if (const auto graph = weak.lock()) graph->cancellation_.Cancel(why);
  });
  graph_->program->Start(run_, no_args_, &no_retvals_,
                         [self = shared_from_this()](const Status& s) { self->OnEnd(s); });
}

void PartialGraph::OnEnd(const Status& status) {
  const std::shared_ptr<TaskRun> step = std::move(step_);
  std::vector<std::shared_ptr<Call>> calls;
  bool in_vain = false;
  {
    MutexLock lock(mu_);
    ended_ = true;
    status_ = status;
    calls = calls_;
    for (const auto& call : calls) in_vain |= call->all_begun && call->receives > 0;
  }
  // All that the nodes send has been sent.
  if (!status.ok()) {
    step->Abort(status);
    groups_.HandleFailure(status);
  } else if (in_vain) {
    step->Abort(NothingToReceive());
  }
  for (const auto& call : calls) Settle(call);
  const auto over = std::move(over_);
  over();
}

void PartialGraph::Take(RunGraphCall* call, const std::shared_ptr<TaskRun>& step,
                        Cancellation* cancellation, WorkerInterface::Done done) {
  auto waiting = std::make_shared<Call>(Call{call, cancellation, std::move(done)});
  const size_t receives = call->recv_keys.size();
  call->received.resize(receives);
  if (cancellation != nullptr) {
    waiting->token = cancellation->Register([weak = weak_from_this()](const Status& why) {
      if (const auto graph = weak.lock()) graph->cancellation_.Cancel(why);
    });
    if (waiting->token == Cancellation::kAlreadyCancelled) {
      cancellation_.Cancel(cancellation->status());
    }
  }
  {
    MutexLock lock(mu_);
    waiting->receives = receives;
    calls_.push_back(waiting);
  }
  for (size_t i = 0; i < receives; ++i) {
    step->HandOutAsync(call->recv_keys[i],
                       [self = shared_from_this(), waiting, i](Status s, Tensor value, bool dead) {
                         if (s.ok() && dead) s = DeadFetch(*waiting->call, i);
                         waiting->call->received[i] = std::move(value);
                         {
                           MutexLock lock(self->mu_);
                           --waiting->receives;
                           waiting->status.Update(s);
                         }
                         self->Settle(waiting);
                       });
  }
  bool in_vain = false;
  {
    MutexLock lock(mu_);
    waiting->all_begun = true;
    in_vain = ended_ && waiting->receives > 0;
  }
  if (in_vain) step->Abort(NothingToReceive());
  Settle(waiting);
}

void PartialGraph::Settle(const std::shared_ptr<Call>& call) {
  WorkerInterface::Done done;
  {
    MutexLock lock(mu_);
    if (call->done == nullptr || !call->all_begun || call->receives > 0) return;
    const bool is_last = call->call->is_last_partial_run;
    if (is_last && !ended_) return;
    done = std::exchange(call->done, nullptr);
    std::erase(calls_, call);
    if (ended_) call->status.Update(status_);
    if (is_last && settings_.trace) TraceToStepStats(trace_.Take(), &call->call->step_stats);
  }
  if (call->token != Cancellation::kAlreadyCancelled) call->cancellation->Deregister(call->token);
  done(call->status);
}

}  // namespace tenon
