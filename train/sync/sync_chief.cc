// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_chief.h"

#include <algorithm>
#include <map>

#include "train/sync/sync_record.h"

namespace tenon {
namespace {

/// So long a wait for messages lasts before time is looked at.
constexpr std::chrono::milliseconds kChiefPause{250};

}  // namespace

Status SyncChief::Start(Session& session, int64_t step) {
  TENON_RETURN_IF_ERROR(Clear(session, step));
  TENON_ASSIGN_OR_RETURN(SyncRecord record, ReadSyncRecord(session, nodes_));
  record = {.epoch = record.epoch + 1, .over = false, .step = step};
  TENON_RETURN_IF_ERROR(WriteSyncRecord(session, nodes_, record));
  stop_ = false;
  thread_ = std::thread([this, &session, record] {
    SyncCoordinatorOptions o;
    o.total_replicas = options_.total_num_replicas;
    o.replicas_to_aggregate = options_.replicas_to_aggregate > 0 ? options_.replicas_to_aggregate
                                                                 : options_.total_num_replicas;
    o.shards = options_.deterministic_shards;
    o.lost_after = options_.lost_after;
    o.join_deadline = options_.join_deadline;
    // Workers know by it that their chief lives.
    o.notice_interval = std::min(options_.notice_interval, options_.chief_deadline / 4);
    SyncCoordinator coordinator(o, record.epoch, record.step, clock_.Now());
    Status status = Serve(session, coordinator);
    if (stop_ && !leaves_) {
      // First, for those who are not told, or do not get to know.
      status = WriteSyncRecord(session, nodes_,
                               {.epoch = record.epoch, .over = true, .step = coordinator.step()});
      coordinator.End();
      status.Update(Send(session, coordinator, {}));
    }
    MutexLock lock(mu_);
    status_ = status;
  });
  return OkStatus();
}

Status SyncChief::Clear(Session& session, int64_t step) {
  while (true) {
    TENON_ASSIGN_OR_RETURN(const int32_t waiting,
                           session.Run<int32_t>({}, nodes_.messages_waiting));
    if (waiting == 0) break;
    TENON_RETURN_IF_ERROR(session.Run({}, {nodes_.next_message}).status());
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> counts, session.Run({}, nodes_.accumulated));
  const Session::Feeds applied = {{nodes_.applied_step, Tensor::Scalar(step)}};
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].scalar<int32_t>() == 0) continue;
    TENON_RETURN_IF_ERROR(session.Run(StepFeeds(applied), {nodes_.taken[i]}).status());
  }
  return session.Run({{nodes_.new_step, Tensor::Scalar(step)}}, {}, {nodes_.set_step}).status();
}

Status SyncChief::Serve(Session& session, SyncCoordinator& coordinator) {
  while (!stop_) {
    TENON_RETURN_IF_ERROR(Receive(session, coordinator));
    if (stop_) break;
    coordinator.Tick(clock_.Now());
    std::optional<int64_t> complete;
    if (coordinator.StepIsComplete()) {
      complete = coordinator.step();
      coordinator.StepApplied(clock_.Now());
    }
    TENON_RETURN_IF_ERROR(Send(session, coordinator, complete));
  }
  return OkStatus();
}

Status SyncChief::Receive(Session& session, SyncCoordinator& coordinator) {
  for (int32_t left = 1; left > 0;) {
    // A message that is lost when the wait ends is said again.
    const auto taken =
        session.Run({}, {nodes_.next_message, nodes_.messages_left}, {}, {.timeout = kChiefPause});
    if (taken.status().code() == StatusCode::kDeadlineExceeded) return OkStatus();
    TENON_RETURN_IF_ERROR(taken.status());
    TENON_ASSIGN_OR_RETURN(const SyncMessage message, SyncMessage::FromTensor((*taken)[0]));
    coordinator.Receive(message, clock_.Now());
    left = (*taken)[1].scalar<int32_t>();
  }
  return OkStatus();
}

Status SyncChief::Send(Session& session, SyncCoordinator& coordinator,
                       std::optional<int64_t> complete) {
  for (const std::string& line : coordinator.TakeNotices()) {
    // Who leaves because training ends is no news.
    if (options_.notice && !stop_) options_.notice(line);
  }
  std::map<int64_t, std::vector<SyncTurn>> turns;
  for (const auto& [worker, turn] : coordinator.TakeTurns()) {
    if (worker < options_.total_num_replicas) turns[worker].push_back(turn);
  }
  if (turns.empty() && !complete) return OkStatus();
  Session::Feeds feeds;
  std::vector<std::string> targets;
  for (const auto& [worker, given] : turns) {
    Tensor rows(DType::kInt64, Shape({static_cast<int64_t>(given.size()), SyncTurn::kFields}));
    int64_t* at = rows.data<int64_t>();
    for (const SyncTurn& turn : given) {
      const Tensor fields = turn.ToTensor();
      at = std::copy_n(fields.data<int64_t>(), SyncTurn::kFields, at);
    }
    feeds.emplace_back(nodes_.turns_for[worker], std::move(rows));
    targets.push_back(complete ? nodes_.give_after_apply[worker] : nodes_.give[worker]);
  }
  if (complete) {
    feeds.emplace_back(nodes_.applied_step, Tensor::Scalar(*complete));
    targets.push_back(nodes_.apply);
  }
  return session.Run(StepFeeds(feeds), std::vector<std::string>(), targets).status();
}

Status SyncChief::status() const {
  MutexLock lock(mu_);
  return status_;
}

void SyncChief::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace tenon
