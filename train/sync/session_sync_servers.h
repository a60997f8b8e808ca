// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/session/session.h"
#include "train/sync/sync_nodes.h"
#include "train/sync/sync_servers.h"

namespace tenon {

/// The way to the servers by steps of a session, which run the nodes of a SyncReplicas.
class SessionSyncServers final : public SyncServers {
 public:
  /// Session and nodes must outlive it.
  SessionSyncServers(Session& session, const SyncNodes& nodes) : session_(session), nodes_(nodes) {}

  Status Say(const SyncMessage& message) override;
  StatusOr<std::optional<Turn>> TakeTurn(std::chrono::milliseconds limit) override;
  Status DropTurns() override;
  StatusOr<SyncRecord> ReadRecord() override;
  Status WriteRecord(const SyncRecord& record) override;
  StatusOr<std::optional<Message>> TakeMessage(std::chrono::milliseconds limit) override;
  Status Clear(int64_t step) override;
  Status Give(const Turns& turns, std::optional<int64_t> complete) override;

 private:
  /// Takes from a queue until it is empty.
  Status Empty(const std::string& waiting, const std::string& next);

  Session& session_;
  const SyncNodes& nodes_;
};

}  // namespace tenon
