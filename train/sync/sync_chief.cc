// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_chief.h"

#include <algorithm>

namespace tenon {
namespace {

/// So long a wait for messages lasts before time is looked at.
constexpr std::chrono::milliseconds kChiefPause{250};

}  // namespace

Status SyncChief::Start(int64_t step) {
  TENON_RETURN_IF_ERROR(servers_.Clear(step));
  TENON_ASSIGN_OR_RETURN(const SyncRecord record, servers_.ReadRecord());
  epoch_ = record.epoch + 1;
  TENON_RETURN_IF_ERROR(servers_.WriteRecord({.epoch = epoch_, .over = false, .step = step}));
  SyncCoordinatorOptions o;
  o.total_replicas = options_.total_num_replicas;
  o.replicas_to_aggregate = options_.replicas_to_aggregate > 0 ? options_.replicas_to_aggregate
                                                               : options_.total_num_replicas;
  o.shards = options_.deterministic_shards;
  o.lost_after = options_.lost_after;
  o.join_deadline = options_.join_deadline;
  // Workers know by it that their chief lives.
  o.notice_interval = std::min(options_.notice_interval, options_.chief_deadline / 4);
  coordinator_ = std::make_unique<SyncCoordinator>(o, epoch_, step, clock_.Now());
  return OkStatus();
}

Status SyncChief::Round() {
  TENON_RETURN_IF_ERROR(Receive());
  if (stop_) return OkStatus();
  coordinator_->Tick(clock_.Now());
  std::optional<int64_t> complete;
  if (coordinator_->StepIsComplete()) {
    complete = coordinator_->step();
    coordinator_->StepApplied(clock_.Now());
  }
  return Send(complete);
}

Status SyncChief::Receive() {
  for (bool has_next = true; has_next && !stop_;) {
    // A message that is lost when the wait ends is said again.
    TENON_ASSIGN_OR_RETURN(const auto taken, servers_.TakeMessage(kChiefPause));
    if (!taken) return OkStatus();
    coordinator_->Receive(taken->message, clock_.Now());
    has_next = taken->has_next;
  }
  return OkStatus();
}

Status SyncChief::Send(std::optional<int64_t> complete) {
  for (const std::string& line : coordinator_->TakeNotices()) {
    // Who leaves because training ends is no news.
    if (options_.notice && !stop_) options_.notice(line);
  }
  SyncServers::Turns turns;
  for (const auto& [worker, turn] : coordinator_->TakeTurns()) {
    if (worker < options_.total_num_replicas) turns[worker].push_back(turn);
  }
  if (turns.empty() && !complete) return OkStatus();
  return servers_.Give(turns, complete);
}

Status SyncChief::Finish() {
  if (leaves_) return OkStatus();
  // First, for those who are not told, or do not get to know.
  Status status =
      servers_.WriteRecord({.epoch = epoch_, .over = true, .step = coordinator_->step()});
  coordinator_->End();
  status.Update(Send({}));
  return status;
}

}  // namespace tenon
