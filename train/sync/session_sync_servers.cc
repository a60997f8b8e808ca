// SPDX-License-Identifier: Apache-2.0
#include "train/sync/session_sync_servers.h"

#include <algorithm>

namespace tenon {

Status SessionSyncServers::Say(const SyncMessage& message) {
  return session_.Run({{nodes_.message, message.ToTensor()}}, {}, {nodes_.say}).status();
}

StatusOr<std::optional<SyncServers::Turn>> SessionSyncServers::TakeTurn(
    std::chrono::milliseconds limit) {
  const auto taken = session_.Run({}, {nodes_.turn, nodes_.turns_left}, {}, {.timeout = limit});
  if (taken.status().code() == StatusCode::kDeadlineExceeded) return std::optional<Turn>();
  TENON_RETURN_IF_ERROR(taken.status());
  TENON_ASSIGN_OR_RETURN(const SyncTurn turn, SyncTurn::FromTensor((*taken)[0]));
  return std::optional<Turn>({turn, (*taken)[1].scalar<int32_t>() > 0});
}

Status SessionSyncServers::Empty(const std::string& waiting, const std::string& next) {
  while (true) {
    TENON_ASSIGN_OR_RETURN(const int32_t count, session_.Run<int32_t>({}, waiting));
    if (count == 0) return OkStatus();
    TENON_RETURN_IF_ERROR(session_.Run({}, {next}).status());
  }
}

Status SessionSyncServers::DropTurns() { return Empty(nodes_.turns_waiting, nodes_.turn); }

StatusOr<SyncRecord> SessionSyncServers::ReadRecord() {
  TENON_ASSIGN_OR_RETURN(const bool exists, session_.Run<bool>({}, nodes_.record_exists));
  if (!exists) return SyncRecord();
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session_.Run({}, {nodes_.record}));
  return SyncRecord::FromTensor(values[0]);
}

Status SessionSyncServers::WriteRecord(const SyncRecord& record) {
  return session_.Run({{nodes_.new_record, record.ToTensor()}}, {}, {nodes_.set_record}).status();
}

StatusOr<std::optional<SyncServers::Message>> SessionSyncServers::TakeMessage(
    std::chrono::milliseconds limit) {
  const auto taken =
      session_.Run({}, {nodes_.next_message, nodes_.messages_left}, {}, {.timeout = limit});
  if (taken.status().code() == StatusCode::kDeadlineExceeded) return std::optional<Message>();
  TENON_RETURN_IF_ERROR(taken.status());
  TENON_ASSIGN_OR_RETURN(const SyncMessage message, SyncMessage::FromTensor((*taken)[0]));
  return std::optional<Message>({message, (*taken)[1].scalar<int32_t>() > 0});
}

Status SessionSyncServers::Clear(int64_t step) {
  TENON_RETURN_IF_ERROR(Empty(nodes_.messages_waiting, nodes_.next_message));
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> counts, session_.Run({}, nodes_.accumulated));
  const Session::Feeds applied = {{nodes_.applied_step, Tensor::Scalar(step)}};
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].scalar<int32_t>() == 0) continue;
    TENON_RETURN_IF_ERROR(session_.Run(StepFeeds(applied), {nodes_.taken[i]}).status());
  }
  return session_.Run({{nodes_.new_step, Tensor::Scalar(step)}}, {}, {nodes_.set_step}).status();
}

Status SessionSyncServers::Give(const Turns& turns, std::optional<int64_t> complete) {
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
  if (targets.empty()) return OkStatus();
  return session_.Run(StepFeeds(feeds), std::vector<std::string>(), targets).status();
}

}  // namespace tenon
