// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_replicas_hook.h"

#include "train/sessions/stop_signal.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kTurnPause{250};
constexpr std::chrono::milliseconds kSignInterval{1000};

}  // namespace

SyncReplicasHook::SyncReplicasHook(const SyncReplicasOptions& options, const SyncNodes& nodes)
    : options_(options), nodes_(nodes) {}

SyncReplicasHook::~SyncReplicasHook() { EndThreads(); }

SyncTurn SyncReplicasHook::turn() const {
  MutexLock lock(mu_);
  if (!worker_) return {};
  worker_->TurnAsked();
  return worker_->turn();
}

Status SyncReplicasHook::AfterCreateSession(const RunContext& context, int64_t global_step) {
  if (global_step < 0) {
    return InvalidArgument(
        "synchronous training needs the graph's step counter: give GlobalStep() "
        "to the optimizer");
  }
  {
    MutexLock lock(mu_);
    end_ = false;
    if (!worker_) {
      // One for the life of this process: in a new session the chief goes on with the same worker.
      const auto incarnation = static_cast<int64_t>(context.entropy().NextNonZero() >> 1);
      worker_.emplace(options_, incarnation, static_cast<int64_t>(nodes_.push.size()));
    }
    worker_->Begin();
  }
  servers_ = std::make_unique<SessionSyncServers>(context.session(), nodes_);
  // What an earlier process of this worker has not taken.
  TENON_RETURN_IF_ERROR(servers_->DropTurns());
  if (options_.task == 0) {
    chief_ = std::make_unique<SyncChief>(options_, *servers_, context.clock());
    TENON_RETURN_IF_ERROR(chief_->Start(global_step));
    chief_thread_ = std::make_unique<SyncChiefThread>(*chief_);
    TENON_RETURN_IF_ERROR(chief_thread_->Start(context.threads()));
  }
  TENON_ASSIGN_OR_RETURN(
      signs_, context.threads().Start([this, &clock = context.clock()] { GiveSigns(clock); }));
  return Wait(context);
}

void SyncReplicasHook::GiveSigns(Clock& clock) {
  while (true) {
    std::vector<SyncMessage> signs;
    {
      MutexLock lock(mu_);
      if (end_) return;
      signs = worker_->Signs();
    }
    // Whatever is wrong, who runs the steps will find it.
    for (const SyncMessage& sign : signs) servers_->Say(sign).IgnoreError();
    MutexLock lock(mu_);
    const Clock::Time until = clock.Now() + kSignInterval;
    while (!end_ && clock.WaitUntil(ended_, mu_, until)) {
    }
  }
}

StatusOr<SyncWorker::Next> SyncReplicasHook::TakeTurn(Clock& clock) {
  TENON_ASSIGN_OR_RETURN(const auto taken, servers_->TakeTurn(kTurnPause));
  MutexLock lock(mu_);
  if (!taken) return worker_->HearNothing(clock.Now());
  return worker_->Receive(taken->turn, taken->has_next, clock.Now());
}

StatusOr<SyncWorker::Next> SyncReplicasHook::ReadRecord() {
  std::optional<SyncRecord> record;
  if (chief_ == nullptr) {
    TENON_ASSIGN_OR_RETURN(record, servers_->ReadRecord());
  }
  MutexLock lock(mu_);
  return worker_->Read(record);
}

void SyncReplicasHook::TellNotices() {
  std::vector<std::string> lines;
  {
    MutexLock lock(mu_);
    lines = worker_->TakeNotices();
  }
  if (!options_.notice) return;
  for (const std::string& line : lines) options_.notice(line);
}

Status SyncReplicasHook::Wait(const RunContext& context) {
  using Next = SyncWorker::Next;
  Clock& clock = context.clock();
  {
    MutexLock lock(mu_);
    worker_->BeginWait(clock.Now());
  }
  Next next = Next::kTakeTurn;
  while (next != Next::kWork && next != Next::kEnd) {
    if (chief_thread_ != nullptr) TENON_RETURN_IF_ERROR(chief_thread_->status());
    if (context.stop_requested() || StopSignal::received() != 0) return OkStatus();
    const auto found = next == Next::kReadRecord ? ReadRecord() : TakeTurn(clock);
    TellNotices();
    TENON_ASSIGN_OR_RETURN(next, found);
  }
  if (next == Next::kEnd) context.RequestStop();
  return OkStatus();
}

Status SyncReplicasHook::BeforeRun(const RunContext& context, RunArguments* arguments) {
  pushing_ = false;
  if (!context.Runs(nodes_.train)) return OkStatus();
  MutexLock lock(mu_);
  const std::optional<SyncMessage> done = worker_->BeginRun();
  if (!done) return OkStatus();
  pushing_ = true;
  arguments->feeds = {{nodes_.local_step, Tensor::Scalar(done->step)},
                      {nodes_.message, done->ToTensor()}};
  arguments->targets = {nodes_.push[static_cast<size_t>(done->shard)]};
  return OkStatus();
}

Status SyncReplicasHook::AfterRun(const RunContext& context, const RunValues& values) {
  (void)values;
  if (!context.Runs(nodes_.train)) return OkStatus();
  SyncWorker::Next next;
  {
    MutexLock lock(mu_);
    next = worker_->EndRun(pushing_);
  }
  return next == SyncWorker::Next::kWork ? OkStatus() : Wait(context);
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
  SyncMessage left;
  {
    MutexLock lock(mu_);
    left = worker_->Left();
  }
  Status status = servers_->Say(left);
  // Who is not told that training is over, and finds no record of it, waits in vain.
  if (chief_ != nullptr && !context.circumstances().is_interrupted) {
    status.Update(chief_thread_->Stop());
  }
  EndThreads();
  return status;
}

void SyncReplicasHook::SessionClosed() { EndThreads(); }

void SyncReplicasHook::EndSigns() {
  {
    MutexLock lock(mu_);
    end_ = true;
    ended_.NotifyAll();
  }
  signs_ = nullptr;
}

void SyncReplicasHook::EndThreads() {
  EndSigns();
  chief_thread_ = nullptr;
  chief_ = nullptr;
  servers_ = nullptr;
}

}  // namespace tenon
