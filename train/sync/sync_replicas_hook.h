// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "train/sessions/session_hook.h"
#include "train/sync/sync_chief.h"
#include "train/sync/sync_replicas.h"

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
  const SyncTurn& turn() const {
    asked_ = true;
    input_is_old_ = false;
    return turn_;
  }

  Status AfterCreateSession(const RunContext& context, int64_t global_step) override;
  Status BeforeRun(const RunContext& context, RunArguments* arguments) override;
  Status AfterRun(const RunContext& context, const RunValues& values) override;
  Status End(const RunContext& context) override;
  void SessionClosed() override;

 private:
  /// Waits until there is a turn, the end, or reason to give up.
  Status Wait(const RunContext& context);
  /// Takes in one that has come; InvalidArgument when no chief with the same options can have sent
  /// it.
  Status Accept(const SyncTurn& turn, bool* over);
  /// After the chief has said nothing for `silent`: what the record says. True when training has
  /// ended; DeadlineExceeded when there is no more waiting.
  StatusOr<bool> EndedSilently(Session& session, std::chrono::milliseconds silent) const;
  Status Say(Session& session, SyncMessage message) const;
  /// Says every second that this worker is there.
  void GiveSigns(Session& session, Clock& clock);
  void EndSigns();
  void EndThreads();

  const SyncReplicasOptions options_;
  const SyncNodes nodes_;
  const int64_t incarnation_;
  SyncTurn turn_;
  mutable bool asked_ = false;         // for a turn, ever
  mutable bool input_is_old_ = false;  // of a turn of the session before
  std::deque<SyncTurn> next_;          // more shards of the same step
  std::vector<SyncTurn> seen_;         // of the present step
  bool pushing_ = false;               // the run that goes on is one of the training step
  std::unique_ptr<SyncChief> chief_;
  std::thread signs_;
  mutable Mutex mu_;
  CondVar ended_;
  bool end_ ABSL_GUARDED_BY(mu_) = false;
  /// What the signs say: the step of the last turn, and what of it is done.
  int64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t step_ ABSL_GUARDED_BY(mu_) = -1;
  std::vector<int64_t> done_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
