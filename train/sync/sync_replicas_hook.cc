// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_replicas_hook.h"

#include <algorithm>
#include <random>

#include "distributed/protocol/limits.h"
#include "train/sessions/stop_signal.h"
#include "train/sync/sync_record.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kTurnPause{250};
/// After so long without a turn, and each time again, the record is looked at.
constexpr std::chrono::milliseconds kLookInterval{1000};
constexpr std::chrono::milliseconds kSignInterval{1000};

int64_t NewIncarnation() {
  std::random_device source;
  return static_cast<int64_t>((uint64_t{source()} << 31) ^ source()) & INT64_MAX;
}

}  // namespace

SyncReplicasHook::SyncReplicasHook(const SyncReplicasOptions& options, const SyncNodes& nodes)
    : options_(options), nodes_(nodes), incarnation_(NewIncarnation()) {}

SyncReplicasHook::~SyncReplicasHook() { EndThreads(); }

Status SyncReplicasHook::AfterCreateSession(const RunContext& context, int64_t global_step) {
  if (global_step < 0) {
    return InvalidArgument(
        "synchronous training needs the graph's step counter: give GlobalStep() "
        "to the optimizer");
  }
  Session& session = context.session();
  next_.clear();
  seen_.clear();
  turn_ = {};
  input_is_old_ = asked_;
  {
    MutexLock lock(mu_);
    end_ = false;
    epoch_ = 0;
    step_ = -1;
    done_.clear();
  }
  // What an earlier process of this worker has not taken.
  while (true) {
    TENON_ASSIGN_OR_RETURN(const int32_t waiting, session.Run<int32_t>({}, nodes_.turns_waiting));
    if (waiting == 0) break;
    TENON_RETURN_IF_ERROR(session.Run({}, {nodes_.turn}).status());
  }
  if (options_.task == 0) {
    chief_ = std::make_unique<SyncChief>(options_, nodes_, context.clock());
    TENON_RETURN_IF_ERROR(chief_->Start(session, global_step));
  }
  signs_ = std::thread([this, &session, &clock = context.clock()] { GiveSigns(session, clock); });
  return Wait(context);
}

Status SyncReplicasHook::Say(Session& session, SyncMessage message) const {
  message.worker = options_.task;
  message.incarnation = incarnation_;
  return session.Run({{nodes_.message, message.ToTensor()}}, {}, {nodes_.say}).status();
}

void SyncReplicasHook::GiveSigns(Session& session, Clock& clock) {
  while (true) {
    SyncMessage here;
    std::vector<int64_t> done;
    {
      MutexLock lock(mu_);
      if (end_) return;
      here.epoch = epoch_;
      here.step = step_;
      done = done_;
    }
    // Whatever is wrong, who runs the steps will find it.
    Say(session, here).IgnoreError();
    for (const int64_t shard : done) {
      Say(session,
          {.kind = SyncMessage::kDone, .epoch = here.epoch, .step = here.step, .shard = shard})
          .IgnoreError();
    }
    MutexLock lock(mu_);
    const Clock::Time until = clock.Now() + kSignInterval;
    while (!end_ && clock.WaitUntil(ended_, mu_, until)) {
    }
    if (end_) return;
  }
}

Status SyncReplicasHook::Accept(const SyncTurn& turn, bool* over) {
  MutexLock lock(mu_);
  if (turn.epoch < epoch_) return OkStatus();
  if (turn.kind == SyncTurn::kOver) {
    *over = true;
    return OkStatus();
  }
  if (turn.kind == SyncTurn::kWaiting) return OkStatus();
  if (turn.epoch == epoch_ && turn.step < step_) return OkStatus();
  if (turn.epoch > epoch_ || turn.step > step_) {
    // What of an older step is left undone is not wanted any more.
    epoch_ = turn.epoch;
    step_ = turn.step;
    done_.clear();
    seen_.clear();
    next_.clear();
  }
  const bool known = std::any_of(seen_.begin(), seen_.end(),
                                 [&](const SyncTurn& t) { return t.shard == turn.shard; });
  if (known) return OkStatus();
  if (turn.shard < 0 || turn.shard >= static_cast<int64_t>(nodes_.push.size())) {
    return InvalidArgument("the chief gives shard ", turn.shard, "; this worker knows ",
                           nodes_.push.size(), ": both need the same options");
  }
  seen_.push_back(turn);
  next_.push_back(turn);
  return OkStatus();
}

StatusOr<bool> SyncReplicasHook::EndedSilently(Session& session,
                                               std::chrono::milliseconds silent) const {
  int64_t epoch, step;
  {
    MutexLock lock(mu_);
    epoch = epoch_;
    step = step_;
  }
  const bool is_late = silent >= options_.chief_deadline;
  if (chief_ == nullptr) {
    TENON_ASSIGN_OR_RETURN(const SyncRecord record, ReadSyncRecord(session, nodes_));
    // Who has heard nothing may have come before the chief of a training that goes on where an
    // earlier one has ended.
    if (record.over && (epoch > 0 || silent >= options_.lost_after || is_late)) {
      if (options_.notice) {
        options_.notice(
            StrCat("the chief, worker 0, has ended training at step ", record.step,
                   epoch > 0 ? "" : StrCat(", before worker ", options_.task, " came")));
      }
      return true;
    }
  }
  if (!is_late) return false;
  return DeadlineExceeded(
      "worker ", options_.task, " waited ", static_cast<double>(silent.count()) / 1000.0,
      " s for a turn of the chief, worker 0, which gave no sign of life and has not ended "
      "training; ",
      step < 0 ? std::string("there was none before") : StrCat("the last one was of step ", step));
}

Status SyncReplicasHook::Wait(const RunContext& context) {
  std::chrono::milliseconds silent{0};  // the chief, while this process listened
  auto next_look = kLookInterval;
  Clock& clock = context.clock();
  Clock::Time listened = clock.Now(), last_turn = listened;
  Clock::Time next_notice = last_turn + kNoticePause;
  bool over = false;
  while (true) {
    if (chief_ != nullptr) TENON_RETURN_IF_ERROR(chief_->status());
    if (context.stop_requested() || StopSignal::received() != 0) return OkStatus();
    const auto taken =
        context.session().Run({}, {nodes_.turn, nodes_.turns_left}, {}, {.timeout = kTurnPause});
    if (taken.status().code() == StatusCode::kDeadlineExceeded) {
      const Clock::Time now = clock.Now();
      // Longer ones are of a process that was stopped, or of a server that did not answer.
      silent += std::min(std::chrono::duration_cast<std::chrono::milliseconds>(now - listened),
                         kLookInterval);
      listened = now;
      if (now >= next_notice && options_.notice) {
        next_notice = now + kNoticePause;
        const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - last_turn);
        options_.notice(
            StrCat("waiting for a turn of the chief, worker 0, ", waited.count(), " s now"));
      }
      if (silent < next_look && silent < options_.chief_deadline) continue;
      next_look = silent + kLookInterval;
      TENON_ASSIGN_OR_RETURN(over, EndedSilently(context.session(), silent));
      if (!over) continue;
      context.RequestStop();
      return OkStatus();
    }
    TENON_RETURN_IF_ERROR(taken.status());
    TENON_ASSIGN_OR_RETURN(const SyncTurn turn, SyncTurn::FromTensor((*taken)[0]));
    silent = std::chrono::milliseconds(0);
    next_look = kLookInterval;
    listened = last_turn = clock.Now();
    next_notice = last_turn + kNoticePause;
    if (turn.kind == SyncTurn::kWaiting && options_.notice && options_.task != 0) {
      options_.notice(turn.missing < 0
                          ? StrCat("step ", turn.step, " waits for workers to come")
                          : StrCat("step ", turn.step, " waits for worker ", turn.missing));
    }
    TENON_RETURN_IF_ERROR(Accept(turn, &over));
    if (over) {
      context.RequestStop();
      return OkStatus();
    }
    // The newest is wanted: the others may be of steps that are over.
    if ((*taken)[1].scalar<int32_t>() > 0 || next_.empty()) continue;
    turn_ = next_.front();
    next_.pop_front();
    return OkStatus();
  }
}

Status SyncReplicasHook::BeforeRun(const RunContext& context, RunArguments* arguments) {
  pushing_ = context.Runs(nodes_.train);
  if (!pushing_) return OkStatus();
  if (options_.deterministic_shards > 0 && input_is_old_) {
    pushing_ = false;
    return OkStatus();
  }
  const SyncMessage done{SyncMessage::kDone, options_.task, incarnation_,
                         turn_.epoch,        turn_.step,    turn_.shard};
  arguments->feeds = {{nodes_.local_step, Tensor::Scalar(turn_.step)},
                      {nodes_.message, done.ToTensor()}};
  arguments->targets = {nodes_.push[static_cast<size_t>(turn_.shard)]};
  return OkStatus();
}

Status SyncReplicasHook::AfterRun(const RunContext& context, const RunValues& values) {
  (void)values;
  if (context.Runs(nodes_.train)) input_is_old_ = false;
  if (!pushing_) return OkStatus();
  {
    MutexLock lock(mu_);
    if (turn_.epoch == epoch_ && turn_.step == step_) done_.push_back(turn_.shard);
  }
  if (next_.empty()) return Wait(context);
  turn_ = next_.front();
  next_.pop_front();
  return OkStatus();
}

Status SyncReplicasHook::End(const RunContext& context) {
  if (chief_ != nullptr && context.circumstances().is_interrupted) {
    // As a worker leaves: it may be started again, and the others wait for that.
    if (options_.notice) options_.notice("the chief leaves; the other workers wait for its return");
    chief_->Leave();
  } else if (chief_ != nullptr) {
    chief_->RequestStop();
  }
  // First, or a sign that comes after it takes the message back.
  EndSigns();
  const Status left = Say(context.session(), {.kind = SyncMessage::kLeft});
  EndThreads();
  return left;
}

void SyncReplicasHook::SessionClosed() { EndThreads(); }

void SyncReplicasHook::EndSigns() {
  {
    MutexLock lock(mu_);
    end_ = true;
    ended_.NotifyAll();
  }
  if (signs_.joinable()) signs_.join();
}

void SyncReplicasHook::EndThreads() {
  EndSigns();
  chief_ = nullptr;
}

}  // namespace tenon
