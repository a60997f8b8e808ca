// SPDX-License-Identifier: Apache-2.0
#include "distributed/step_table.h"

#include "core/device_name.h"

namespace tenon {
namespace {

/// A RecvTensor on its way to another task.
struct RemoteRecv {
  RecvTensorCall call;
  std::shared_ptr<WorkerInterface> worker;
  std::shared_ptr<WorkerStep> step;
  Rendezvous::RecvCallback done;
};

}  // namespace

void WorkerStep::RecvAsync(std::string_view key, RecvCallback done) {
  const std::string_view src = key.substr(0, key.find(';'));
  // "/job:ps/replica:0/task:0/device:CPU:0": the task is what comes before the last slash.
  const std::string_view task = src.substr(0, src.rfind('/'));
  if (task == own_task_) return local_.RecvAsync(key, std::move(done));
  auto worker = workers_.Get(std::string(task));
  if (!worker.ok()) return done(worker.status(), Tensor(), false);
  auto* recv = new RemoteRecv{{step_id_, std::string(key), Tensor(), false},
                              *std::move(worker),
                              shared_from_this(),
                              std::move(done)};
  recv->worker->RecvTensorAsync(&recv->call, &remote_calls_, [recv](Status status) {
    const std::unique_ptr<RemoteRecv> owned(recv);
    owned->done(status, std::move(owned->call.tensor), owned->call.is_dead);
  });
}

void WorkerStep::Abort(const Status& why) {
  local_.Abort(why);
  remote_calls_.Cancel(why);
}

std::shared_ptr<WorkerStep> StepTable::FindOrCreate(int64_t step_id) {
  MutexLock lock(mu_);
  std::shared_ptr<WorkerStep>& step = steps_[step_id];
  if (step == nullptr) {
    step = std::make_shared<WorkerStep>(step_id, own_task_, workers_);
    if (!aborted_.ok()) step->Abort(aborted_);
  }
  return step;
}

void StepTable::Remove(int64_t step_id) {
  std::shared_ptr<WorkerStep> step;
  {
    MutexLock lock(mu_);
    const auto found = steps_.find(step_id);
    if (found == steps_.end()) return;
    step = std::move(found->second);
    steps_.erase(found);
  }
  step->Abort(Aborted("step ", step_id, " has been cleaned up"));
}

void StepTable::AbortAll(const Status& why) {
  flat_hash_map<int64_t, std::shared_ptr<WorkerStep>> steps;
  {
    MutexLock lock(mu_);
    aborted_ = why;
    steps.swap(steps_);
  }
  for (auto& [id, step] : steps) step->Abort(why);
}

}  // namespace tenon
