// SPDX-License-Identifier: Apache-2.0
#include "distributed/worker/run_table.h"

#include <tuple>

#include "core/device/device_name.h"
#include "runtime/execute/trace.h"

namespace tenon {
namespace {

/// A RecvTensor on its way to another task.
struct RemoteRecv {
  RecvTensorCall call;
  std::shared_ptr<WorkerInterface> worker;
  std::shared_ptr<TaskRun> step;
  Rendezvous::RecvCallback done;
  int64_t begin_ns = 0;  // when somebody wants to know
};

/// A call that comes so many steps after its step's clean-up does not come.
constexpr size_t kRememberedSteps = 1 << 14;

/// What people can read.
constexpr size_t kDescribedSteps = 20;
constexpr int kDescribedWaits = 20;

Status ForPartitions() {
  return InvalidArgument("a tensor is asked for that goes from device to device within the task");
}

Status CleanedUp(int64_t step_id) { return Aborted("step ", step_id, " has been cleaned up"); }

}  // namespace

void TaskRun::RecvAsync(std::string_view key, RecvCallback done) {
  const auto parts = RendezvousKeyParts::Of(key);
  const std::string_view task = parts ? TaskPartOf(parts->src_device) : std::string_view();
  if (task == peers_->task) return local_.RecvAsync(key, std::move(done));
  auto worker = peers_->workers->Get(std::string(task));
  if (!worker.ok()) return done(worker.status(), Tensor(), false);
  auto* recv = new RemoteRecv{{step_id_, std::string(key), 0, &peers_->memory.For(key)},
                              *std::move(worker),
                              shared_from_this(),
                              std::move(done),
                              transfers_.active() ? NowNanos() : 0};
  {
    MutexLock lock(mu_);
    remote_keys_.emplace(recv, recv->call.key);
  }
  recv->worker->RecvTensorAsync(&recv->call, &remote_calls_, [recv](Status status) {
    const std::unique_ptr<RemoteRecv> owned(recv);
    recv->step->EndRemote(recv);
    if (recv->begin_ns > 0 && status.ok()) recv->step->LogTransfer(recv->call, recv->begin_ns);
    owned->done(status, std::move(owned->call.tensor), owned->call.is_dead);
  });
}

void TaskRun::HandOutAsync(std::string_view key, RecvCallback done) {
  local_.RecvAsync(key, [done = std::move(done)](const Status& status, Tensor value, bool dead) {
    if (!value.IsHostMemory()) return done(ForPartitions(), Tensor(), false);
    value.Settle();
    done(status, std::move(value), dead);
  });
}

Status TaskRun::HandOut(std::string_view key, Tensor* value, bool* dead) {
  TENON_RETURN_IF_ERROR(local_.Take(key, value, dead));
  if (!value->IsHostMemory()) {
    *value = Tensor();
    return ForPartitions();
  }
  value->Settle();
  return OkStatus();
}

void TaskRun::EndRemote(const void* recv) {
  MutexLock lock(mu_);
  remote_keys_.erase(recv);
}

void TaskRun::LogTransfer(const RecvTensorCall& call, int64_t begin_ns) {
  const bool valid = call.tensor.valid();
  transfers_.Add(step_id_, call.key, begin_ns, NowNanos(),
                 valid ? static_cast<int64_t>(call.tensor.num_bytes()) : 0);
}

void TaskRun::Describe(Clock::Time now, cluster::StepStatus* out) {
  out->set_seconds(std::chrono::duration<double>(now - begin_).count());
  const auto add = [out](const std::string& key, const char* format) {
    if (out->waits_size() == kDescribedWaits) return;
    const auto parsed = RendezvousKey::Parse(key);
    if (!parsed.ok()) return;
    out->add_waits(
        StrCat(parsed->dst_device, " waits for ", parsed->tensor_name, format, parsed->src_device));
  };
  for (const std::string& key : local_.Awaited()) add(key, ", not made yet at ");
  MutexLock lock(mu_);
  for (const auto& [recv, key] : remote_keys_) add(key, ", asked of ");
}

void TaskRun::Abort(const Status& why) {
  local_.Abort(why);
  remote_calls_.Cancel(why);
}

void TaskRun::OnAbort(const Cancellation::Callback& callback) {
  const Cancellation::Token token = remote_calls_.Register(callback);
  if (token == Cancellation::kAlreadyCancelled) callback(remote_calls_.status());
}

std::shared_ptr<PartialGraph> TaskRun::FindOrMakePartial(
    const std::function<std::shared_ptr<PartialGraph>()>& make) {
  MutexLock lock(mu_);
  if (partial_ == nullptr) partial_ = make();
  return partial_;
}

StatusOr<RunTable::Entry*> RunTable::FindOrCreate(int64_t step_id) {
  if (!aborted_.ok()) return aborted_;
  if (ended_.contains(step_id)) return CleanedUp(step_id);
  Entry& entry = steps_[step_id];
  if (entry.step == nullptr) {
    entry.step = std::make_shared<TaskRun>(step_id, transfers_, clock_.Now());
  }
  return &entry;
}

StatusOr<std::shared_ptr<TaskRun>> RunTable::Run(int64_t step_id, const std::string& session,
                                                 std::shared_ptr<const TaskPeers> peers) {
  MutexLock lock(mu_);
  const auto known = steps_.find(step_id);
  // Steps of groups are few, and their members would wait in vain.
  if (runs_ >= kMaxRuns && session != kGroupSession &&
      (known == steps_.end() || !known->second.runs)) {
    return ResourceExhausted(own_task_, " has ", runs_,
                             " steps that run or have not been cleaned up, as many as it may");
  }
  TENON_ASSIGN_OR_RETURN(Entry* const entry, FindOrCreate(step_id));
  if (!entry->runs) {
    entry->step->SetPeers(std::move(peers));
    ++runs_;
  }
  entry->session = session;
  entry->runs = true;
  return entry->step;
}

StatusOr<std::shared_ptr<TaskRun>> RunTable::BeginReceive(int64_t step_id) {
  MutexLock lock(mu_);
  if (receives_ >= kMaxReceives) {
    return ResourceExhausted(own_task_, " has ", receives_,
                             " receives that wait, as many as it may");
  }
  TENON_ASSIGN_OR_RETURN(Entry* const entry, FindOrCreate(step_id));
  ++entry->receives;
  ++receives_;
  return entry->step;
}

void RunTable::EndReceive(int64_t step_id) {
  std::shared_ptr<TaskRun> dying;  // declared first: dies outside the lock
  MutexLock lock(mu_);
  --receives_;
  const auto found = steps_.find(step_id);
  if (found == steps_.end() || found->second.receives == 0) return;  // cleaned up
  if (--found->second.receives > 0 || found->second.runs) return;
  dying = std::move(found->second.step);
  steps_.erase(found);
}

void RunTable::Remember(int64_t step_id) {
  if (!ended_.insert(step_id).second) return;
  ended_order_.push_back(step_id);
  if (ended_order_.size() <= kRememberedSteps) return;
  ended_.erase(ended_order_.front());
  ended_order_.pop_front();
}

void RunTable::Remove(int64_t step_id) {
  std::shared_ptr<TaskRun> step;
  {
    MutexLock lock(mu_);
    Remember(step_id);
    const auto found = steps_.find(step_id);
    if (found == steps_.end()) return;
    step = std::move(found->second.step);
    runs_ -= found->second.runs ? 1 : 0;
    steps_.erase(found);
  }
  step->Abort(CleanedUp(step_id));
}

void RunTable::RemoveSession(const std::string& session) {
  std::vector<std::shared_ptr<TaskRun>> dying;
  {
    MutexLock lock(mu_);
    for (auto it = steps_.begin(); it != steps_.end();) {
      if (it->second.runs && it->second.session == session) {
        Remember(it->first);
        dying.push_back(std::move(it->second.step));
        --runs_;
        steps_.erase(it++);
      } else {
        ++it;
      }
    }
  }
  for (const auto& step : dying) step->Abort(Aborted("the session of the step has been deleted"));
}

void RunTable::AbortAll(const Status& why) {
  flat_hash_map<int64_t, Entry> steps;
  {
    MutexLock lock(mu_);
    aborted_ = why;
    steps.swap(steps_);
    runs_ = 0;
  }
  for (auto& [id, entry] : steps) entry.step->Abort(why);
}

void RunTable::Describe(Clock::Time now, cluster::ServerStatusResponse* out) {
  std::vector<std::tuple<int64_t, std::string, std::shared_ptr<TaskRun>>> steps;
  {
    MutexLock lock(mu_);
    int64_t count = 0, receives = 0;
    for (const auto& [id, entry] : steps_) {
      if (entry.session == kGroupSession) continue;
      ++count;
      receives += static_cast<int64_t>(entry.receives);
      if (steps.size() == kDescribedSteps) continue;
      steps.emplace_back(id, entry.session, entry.step);
    }
    out->set_num_steps(count);
    out->set_num_receives(receives);
  }
  for (const auto& [id, session, step] : steps) {
    cluster::StepStatus* const status = out->add_steps();
    status->set_id(id);
    status->set_session(session.substr(0, 8));
    step->Describe(now, status);
  }
}

}  // namespace tenon
