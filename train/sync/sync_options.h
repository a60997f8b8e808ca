// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace tenon {

/// Options of SyncReplicas, by name.
struct SyncReplicasOptions {
  /// A step needs the gradients of so many workers; 0: of all. Those above are backup workers.
  int replicas_to_aggregate = 0;
  /// How many workers there are.
  int total_num_replicas = 1;
  /// The number of this worker. Worker 0 is the chief.
  int task = 0;
  /// Above 0: deterministic. The batch of a step is cut into so many shards, whose gradients are
  /// computed alone and added in the order of the shards, whoever computes them: any number of
  /// workers and parameter servers makes the same values, bit for bit. The program asks
  /// SyncReplicasHook::turn which shard is next.
  int deterministic_shards = 0;
  /// A worker that says nothing for so long has died, and the others go on without it. So long,
  /// too, a worker that comes when training has ended on these servers waits for a chief that goes
  /// on.
  std::chrono::milliseconds lost_after{10000};
  /// The first step waits so long for workers that have not come.
  std::chrono::milliseconds join_deadline{60000};
  /// A chief that says nothing for so long, and has not ended training, has died: the step fails
  /// with DeadlineExceeded, after which there is no recovery.
  std::chrono::milliseconds chief_deadline{60000};
  /// How often is said who a step waits for; four times in a chief_deadline at least.
  std::chrono::milliseconds notice_interval{5000};
  /// Gets lines for people, from any thread: who joins and leaves, and who is missing; may be null.
  std::function<void(const std::string& line)> notice = {};
  std::string name = "sync_replicas";
};

}  // namespace tenon
