// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "runtime/session/session.h"
#include "train/sync/sync_replicas.h"

namespace tenon {

/// Runs a SyncCoordinator over a session, on a thread of its own: takes the workers' messages,
/// applies the gradients of complete steps, gives turns.
class SyncChief {
 public:
  /// `clock` must outlive it.
  SyncChief(const SyncReplicasOptions& options, const SyncNodes& nodes, Clock& clock)
      : options_(options), nodes_(nodes), clock_(clock) {}
  ~SyncChief() { Stop(); }

  /// Empties queues and accumulators of what an earlier chief has left there, and begins with
  /// `step`, in an epoch above those of earlier chiefs. The session must live until Stop.
  Status Start(Session& session, int64_t step);
  /// Why it has ended by itself; OK while it runs.
  Status status() const;
  /// No further step is applied. Stop must follow.
  void RequestStop() { stop_ = true; }
  /// The same, and training is not over: another chief is to go on. Stop must follow.
  void Leave() {
    leaves_ = true;
    stop_ = true;
  }
  /// Tells the workers that training is over, also those that come later (SyncRecord), if the
  /// session still runs and this chief does not leave, and waits for the thread.
  void Stop();

 private:
  Status Clear(Session& session, int64_t step);
  Status Serve(Session& session, SyncCoordinator& coordinator);
  /// Takes what has come, waiting a while for the first; and whether anything had.
  Status Receive(Session& session, SyncCoordinator& coordinator);
  /// Sends the turns; after the update of a `complete` step.
  Status Send(Session& session, SyncCoordinator& coordinator, std::optional<int64_t> complete);

  const SyncReplicasOptions options_;
  const SyncNodes nodes_;
  Clock& clock_;
  std::atomic<bool> stop_{false}, leaves_{false};
  std::thread thread_;
  mutable Mutex mu_;
  Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
