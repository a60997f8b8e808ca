// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "train/sync/sync_protocol.h"
#include "train/sync/sync_record.h"

namespace tenon {

/// What workers in step and their chief share on parameter servers: the queue of messages to the
/// chief, a queue of turns for each worker, the accumulators of gradients, and the chief's record.
/// One object is the way of one worker to them, whose errors it returns. Thread-safe.
class SyncServers {
 public:
  virtual ~SyncServers() = default;

  /// A turn, and whether there is another one behind it.
  struct Turn {
    SyncTurn turn;
    bool has_next = false;
  };
  struct Message {
    SyncMessage message;
    bool has_next = false;
  };
  /// The turns to give, by worker.
  using Turns = std::map<int64_t, std::vector<SyncTurn>>;

  virtual Status Say(const SyncMessage& message) = 0;
  /// The next turn of this worker; nothing when none comes within `limit`. One that comes just then
  /// may be lost.
  virtual StatusOr<std::optional<Turn>> TakeTurn(std::chrono::milliseconds limit) = 0;
  /// Forgets the turns of this worker that are there.
  virtual Status DropTurns() = 0;
  /// The default when there is none yet.
  virtual StatusOr<SyncRecord> ReadRecord() = 0;

  // The chief's part.
  virtual Status WriteRecord(const SyncRecord& record) = 0;
  /// The next message to the chief; nothing when none comes within `limit`, as for turns.
  virtual StatusOr<std::optional<Message>> TakeMessage(std::chrono::milliseconds limit) = 0;
  /// Forgets the messages and gradients that are there; gradients of steps before `step` are
  /// refused from now on.
  virtual Status Clear(int64_t step) = 0;
  /// Gives turns; when a step is `complete`, after its update of the variables.
  virtual Status Give(const Turns& turns, std::optional<int64_t> complete) = 0;
};

}  // namespace tenon
