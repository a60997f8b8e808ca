// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_worker.h"

#include <algorithm>

#include "distributed/protocol/limits.h"

namespace tenon {
namespace {

/// After so long without a turn, and each time again, the record is looked at.
constexpr std::chrono::milliseconds kLookInterval{1000};

}  // namespace

void SyncWorker::Begin() {
  epoch_ = 0;
  step_ = -1;
  seen_.clear();
  next_.clear();
  done_.clear();
  turn_ = {};
  input_is_old_ = asked_;
}

void SyncWorker::BeginWait(Time now) {
  silent_ = std::chrono::milliseconds(0);
  next_look_ = kLookInterval;
  listened_ = last_turn_ = now;
  next_notice_ = now + kNoticePause;
}

SyncWorker::Next SyncWorker::HearNothing(Time now) {
  silent_ += std::min(std::chrono::duration_cast<std::chrono::milliseconds>(now - listened_),
                      kLookInterval);
  listened_ = now;
  if (now >= next_notice_) {
    next_notice_ = now + kNoticePause;
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - last_turn_);
    notices_.push_back(
        StrCat("waiting for a turn of the chief, worker 0, ", waited.count(), " s now"));
  }
  if (silent_ < next_look_ && silent_ < options_.chief_deadline) return Next::kTakeTurn;
  next_look_ = silent_ + kLookInterval;
  return Next::kReadRecord;
}

StatusOr<SyncWorker::Next> SyncWorker::Read(const std::optional<SyncRecord>& record) {
  const bool is_late = silent_ >= options_.chief_deadline;
  // Who has heard nothing may have come before the chief of a training that goes on where an
  // earlier one has ended.
  if (record && record->over && (epoch_ > 0 || silent_ >= options_.lost_after || is_late)) {
    notices_.push_back(
        StrCat("the chief, worker 0, has ended training at step ", record->step,
               epoch_ > 0 ? "" : StrCat(", before worker ", options_.task, " came")));
    return Next::kEnd;
  }
  if (!is_late) return Next::kTakeTurn;
  return DeadlineExceeded(
      "worker ", options_.task, " waited ", static_cast<double>(silent_.count()) / 1000.0,
      " s for a turn of the chief, worker 0, which gave no sign of life and has not ended "
      "training; ",
      step_ < 0 ? std::string("there was none before")
                : StrCat("the last one was of step ", step_));
}

StatusOr<SyncWorker::Next> SyncWorker::Receive(const SyncTurn& turn, bool has_next, Time now) {
  BeginWait(now);
  if (turn.kind == SyncTurn::kWaiting && options_.task != 0) {
    notices_.push_back(turn.missing < 0
                           ? StrCat("step ", turn.step, " waits for workers to come")
                           : StrCat("step ", turn.step, " waits for worker ", turn.missing));
  }
  if (turn.epoch >= epoch_ && turn.kind == SyncTurn::kOver) return Next::kEnd;
  if (turn.epoch >= epoch_ && turn.kind == SyncTurn::kWork) {
    if (turn.shard < 0 || turn.shard >= shards_) {
      return InvalidArgument("the chief gives shard ", turn.shard, "; this worker knows ", shards_,
                             ": both need the same options");
    }
    Accept(turn);
  }
  // The newest is wanted: the others may be of steps that are over.
  return has_next ? Next::kTakeTurn : TakeNext();
}

void SyncWorker::Accept(const SyncTurn& turn) {
  if (turn.epoch == epoch_ && turn.step < step_) return;
  if (turn.epoch > epoch_ || turn.step > step_) {
    // What of an older step is left undone is not wanted any more.
    epoch_ = turn.epoch;
    step_ = turn.step;
    done_.clear();
    seen_.clear();
    next_.clear();
  }
  const bool known = std::any_of(seen_.begin(), seen_.end(),
                                 [&](const SyncTurn& t) { return t.shard == turn.shard; });
  if (known) return;
  seen_.push_back(turn);
  next_.push_back(turn);
}

SyncWorker::Next SyncWorker::TakeNext() {
  if (next_.empty()) return Next::kTakeTurn;
  turn_ = next_.front();
  next_.pop_front();
  return Next::kWork;
}

std::optional<SyncMessage> SyncWorker::BeginRun() const {
  if (options_.deterministic_shards > 0 && input_is_old_) return std::nullopt;
  return Message(SyncMessage::kDone, turn_);
}

SyncWorker::Next SyncWorker::EndRun(bool handed_in) {
  input_is_old_ = false;
  if (!handed_in) return Next::kWork;
  if (turn_.epoch == epoch_ && turn_.step == step_) done_.push_back(turn_.shard);
  return TakeNext();
}

std::vector<SyncMessage> SyncWorker::Signs() const {
  SyncTurn present{.epoch = epoch_, .step = step_};
  std::vector<SyncMessage> signs = {Message(SyncMessage::kHere, present)};
  for (const int64_t shard : done_) {
    present.shard = shard;
    signs.push_back(Message(SyncMessage::kDone, present));
  }
  return signs;
}

}  // namespace tenon
