// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "core/base/mutex.h"
#include "train/sessions/session_hook.h"
#include "train/sync/session_sync_servers.h"
#include "train/sync/sync_chief_thread.h"
#include "train/sync/sync_options.h"
#include "train/sync/sync_worker.h"

namespace tenon {

/// A worker's part in synchronous training; see SyncReplicas. In worker 0 it runs the chief's part
/// too, on a thread of its own.
class SyncReplicasHook final : public SessionHook {
 public:
  SyncReplicasHook(const SyncReplicasOptions& options, const SyncNodes& nodes);
  ~SyncReplicasHook() override;

  /// What the next Run of the training step is to compute: of its number `step`, the shard `shard`
  /// (deterministic training). Between runs, while ShouldStop is false. A Run that goes on in a new
  /// session has the input of an older turn: deterministic training does not count it.
  SyncTurn turn() const;

  Status AfterCreateSession(const RunContext& context, int64_t global_step) override;
  Status BeforeRun(const RunContext& context, RunArguments* arguments) override;
  Status AfterRun(const RunContext& context, const RunValues& values) override;
  Status End(const RunContext& context) override;
  void SessionClosed() override;

 private:
  /// Waits until there is a turn, the end, or reason to give up.
  Status Wait(const RunContext& context);
  /// What there is to do after a look at the queue of turns, or at the record.
  StatusOr<SyncWorker::Next> TakeTurn(Clock& clock);
  StatusOr<SyncWorker::Next> ReadRecord();
  void TellNotices();
  /// Says every second that this worker is there.
  void GiveSigns(Clock& clock);
  void EndSigns();
  void EndThreads();

  const SyncReplicasOptions options_;
  const SyncNodes nodes_;
  bool pushing_ = false;                         // the run that goes on hands in gradients
  std::unique_ptr<SessionSyncServers> servers_;  // of the session
  std::unique_ptr<SyncChief> chief_;
  std::unique_ptr<SyncChiefThread> chief_thread_;
  std::unique_ptr<ThreadStarter::Work> signs_;
  mutable Mutex mu_;
  CondVar ended_;
  bool end_ ABSL_GUARDED_BY(mu_) = false;
  mutable std::optional<SyncWorker> worker_ ABSL_GUARDED_BY(mu_);  // from the first session on
};

}  // namespace tenon
