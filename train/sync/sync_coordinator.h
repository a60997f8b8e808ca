// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "train/sync/sync_protocol.h"

namespace tenon {

struct SyncCoordinatorOptions {
  /// A step needs the gradients of so many workers, or of all when there are fewer.
  int replicas_to_aggregate = 1;
  /// How many workers the first step waits for.
  int total_replicas = 1;
  /// Above 0: each step is cut into so many shards and needs the gradients of all.
  int shards = 0;
  /// A worker that says nothing for so long has died.
  std::chrono::milliseconds lost_after{10000};
  /// The first step waits so long for workers that have not come.
  std::chrono::milliseconds join_deadline{60000};
  /// How often is said who a step waits for.
  std::chrono::milliseconds notice_interval{5000};
};

/// What the chief of workers in step decides: who takes part, what each is to do, when a step has
/// all its gradients. It knows no clock, thread or session: it is told what came and when, and
/// asked what to send. Used by one thread at a time.
class SyncCoordinator {
 public:
  using Time = Clock::Time;

  SyncCoordinator(const SyncCoordinatorOptions& options, int64_t epoch, int64_t step, Time now);

  void Receive(const SyncMessage& message, Time now);
  /// Says that time has passed: who is silent, who is missing.
  void Tick(Time now);
  /// Whether the step has the gradients that it needs, which are to be applied now.
  bool StepIsComplete() const;
  /// The gradients were applied: the next step begins.
  void StepApplied(Time now);
  /// Tells all workers that training has ended.
  void End();

  /// What is to be sent to workers since the last call, and lines for people.
  std::vector<std::pair<int64_t, SyncTurn>> TakeTurns() { return std::exchange(turns_, {}); }
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

  int64_t step() const { return step_; }
  /// The workers that take part, by number.
  std::vector<int64_t> active() const;

 private:
  struct Member {
    int64_t incarnation = 0;
    Time last_sign;
    Time last_turn;
  };

  bool deterministic() const { return options_.shards > 0; }
  void Join(int64_t worker, int64_t incarnation, Time now);
  void Leave(int64_t worker, const std::string& why, Time now);
  void BeginStep(Time now);
  /// The turns of the present step that the worker has and has not done, again.
  void Repeat(int64_t worker, Time now);
  void Give(int64_t worker, int64_t shard, Time now);
  int64_t FirstMissing() const;
  std::string Missing() const;

  const SyncCoordinatorOptions options_;
  const int64_t epoch_;
  int64_t step_;
  bool begun_ = false;  // the first step
  const Time start_;
  Time step_begin_, next_notice_;
  std::map<int64_t, Member> members_;
  std::map<int64_t, int64_t> given_;  // shard -> worker; without shards, worker -> worker
  std::set<int64_t> done_;            // shards; without, workers
  std::vector<std::pair<int64_t, SyncTurn>> turns_;
  std::vector<std::string> notices_;
};

}  // namespace tenon
