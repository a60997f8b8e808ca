// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "train/sync/sync_options.h"
#include "train/sync/sync_protocol.h"
#include "train/sync/sync_record.h"

namespace tenon {

/// What a worker in step decides: which turn is its next one, what it says to the chief, how long
/// it believes that the chief lives. It knows no clock, thread or session: it is told what came and
/// when, and asked what to do. Used by one thread at a time.
class SyncWorker {
 public:
  using Time = Clock::Time;

  /// `incarnation` tells this process from others of the same worker, and `shards` is how many a
  /// step has. The options must outlive it.
  SyncWorker(const SyncReplicasOptions& options, int64_t incarnation, int64_t shards)
      : options_(options), incarnation_(incarnation), shards_(shards) {}

  enum class Next {
    kTakeTurn,    // wait for a turn of the chief
    kReadRecord,  // the chief has been silent: see what its record says
    kWork,        // compute the gradients of turn()
    kEnd,         // training is over
  };

  /// A session begins, in which nothing has been heard of the chief.
  void Begin();
  /// A wait for a turn begins.
  void BeginWait(Time now);
  /// No turn has come: kTakeTurn or kReadRecord. To be called often, each second at least: times
  /// between two calls that are longer are not the chief's silence, but that of a process that was
  /// stopped or of a server that did not answer.
  Next HearNothing(Time now);
  /// The record was read as kReadRecord says: kTakeTurn or kEnd. The chief's own worker needs no
  /// record, and gives nothing. DeadlineExceeded when there is no more waiting.
  StatusOr<Next> Read(const std::optional<SyncRecord>& record);
  /// A turn has come; `has_next` says that others wait behind it. kTakeTurn, kWork or kEnd;
  /// InvalidArgument when no chief with the same options can have sent it.
  StatusOr<Next> Receive(const SyncTurn& turn, bool has_next, Time now);

  const SyncTurn& turn() const { return turn_; }
  /// The program has asked for the turn: its next input is that of turn().
  void TurnAsked() {
    asked_ = true;
    input_is_old_ = false;
  }
  /// A run of the training step begins: the message to say when its gradients of turn() are handed
  /// in. Nothing when its input, of a turn of the session before, may not be counted.
  std::optional<SyncMessage> BeginRun() const;
  /// That run has ended well, and the gradients were handed in or not: kWork, on turn(), or
  /// kTakeTurn.
  Next EndRun(bool handed_in);

  /// What is to be said every second, since each may be lost: that the worker is there, and what of
  /// the present step is done.
  std::vector<SyncMessage> Signs() const;
  /// What is to be said at the end, after the last sign.
  SyncMessage Left() const { return Message(SyncMessage::kLeft); }

  /// Lines for people since the last call.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

 private:
  SyncMessage Message(SyncMessage::Kind kind, const SyncTurn& of = {.step = -1}) const {
    return {kind, options_.task, incarnation_, of.epoch, of.step, of.shard};
  }
  void Accept(const SyncTurn& turn);
  Next TakeNext();

  const SyncReplicasOptions& options_;
  const int64_t incarnation_;
  const int64_t shards_;
  // The epoch and step of the newest turn, the shards of it that were given, are left and are done.
  int64_t epoch_ = 0, step_ = -1;
  std::vector<SyncTurn> seen_;
  std::deque<SyncTurn> next_;
  std::vector<int64_t> done_;
  SyncTurn turn_;
  bool asked_ = false;         // for a turn, ever
  bool input_is_old_ = false;  // of a turn of the session before
  // The wait that goes on.
  std::chrono::milliseconds silent_{0};  // the chief, while this process listened
  std::chrono::milliseconds next_look_{0};
  Time listened_, last_turn_, next_notice_;
  std::vector<std::string> notices_;
};

}  // namespace tenon
