// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "core/base/clock.h"
#include "train/sync/sync_coordinator.h"
#include "train/sync/sync_options.h"
#include "train/sync/sync_servers.h"

namespace tenon {

/// The chief of workers in step: has a SyncCoordinator decide about what comes by way of the
/// servers, and does there what it says. It has no thread of its own (SyncChiefThread); used by one
/// at a time, but for RequestStop and Leave.
class SyncChief {
 public:
  /// Options, servers and clock must outlive it.
  SyncChief(const SyncReplicasOptions& options, SyncServers& servers, Clock& clock)
      : options_(options), servers_(servers), clock_(clock) {}

  /// Empties queues and accumulators of what an earlier chief has left there, and begins with
  /// `step`, in an epoch above those of earlier chiefs.
  Status Start(int64_t step);
  /// Takes the messages that have come, waiting a while for the first, applies the gradients of a
  /// complete step, and gives turns. Does nothing after RequestStop or Leave. After Start.
  Status Round();
  /// The last thing to do after RequestStop: tells the workers that training is over, also those
  /// that come later (SyncRecord). After Leave it does nothing.
  Status Finish();

  /// No further step is applied.
  void RequestStop() { stop_ = true; }
  /// The same, and training is not over: another chief is to go on.
  void Leave() {
    leaves_ = true;
    stop_ = true;
  }
  bool is_to_stop() const { return stop_; }
  const SyncCoordinator& coordinator() const { return *coordinator_; }

 private:
  Status Receive();
  /// Sends the turns; after the update of a `complete` step.
  Status Send(std::optional<int64_t> complete);

  const SyncReplicasOptions& options_;
  SyncServers& servers_;
  Clock& clock_;
  std::atomic<bool> stop_{false}, leaves_{false};
  int64_t epoch_ = 0;
  std::unique_ptr<SyncCoordinator> coordinator_;
};

}  // namespace tenon
