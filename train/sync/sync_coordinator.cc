// SPDX-License-Identifier: Apache-2.0
#include "train/sync/sync_coordinator.h"

#include <algorithm>

namespace tenon {
namespace {

/// A turn is given again to who asks for one so long after it was given.
constexpr std::chrono::milliseconds kRepeatAfter{1500};

int64_t SecondsBetween(SyncCoordinator::Time begin, SyncCoordinator::Time end) {
  return std::chrono::duration_cast<std::chrono::seconds>(end - begin).count();
}

std::string WorkersText(const std::vector<int64_t>& workers) {
  return StrCat(workers.size() == 1 ? "worker " : "workers ", Join(workers, ", "));
}

}  // namespace

SyncCoordinator::SyncCoordinator(const SyncCoordinatorOptions& options, int64_t epoch, int64_t step,
                                 Time now)
    : options_(options),
      epoch_(epoch),
      step_(step),
      start_(now),
      step_begin_(now),
      next_notice_(now + options.notice_interval) {}

std::vector<int64_t> SyncCoordinator::active() const {
  std::vector<int64_t> workers;
  for (const auto& [worker, member] : members_) workers.push_back(worker);
  return workers;
}

void SyncCoordinator::Receive(const SyncMessage& message, Time now) {
  const int64_t worker = message.worker;
  if (worker < 0 || worker >= options_.total_replicas) return;
  if (message.kind == SyncMessage::kLeft) {
    const auto found = members_.find(worker);
    if (found != members_.end() && found->second.incarnation == message.incarnation) {
      Leave(worker, "has ended", now);
    }
    return;
  }
  const auto found = members_.find(worker);
  if (found == members_.end()) {
    Join(worker, message.incarnation, now);
  } else if (found->second.incarnation != message.incarnation) {
    Leave(worker, "was started anew", now);
    Join(worker, message.incarnation, now);
  }
  Member& member = members_[worker];
  member.last_sign = now;
  const bool present = message.epoch == epoch_ && message.step == step_;
  if (message.kind == SyncMessage::kDone) {
    const int64_t key = deterministic() ? message.shard : worker;
    if (present && given_.contains(key)) done_.insert(key);
  } else if ((!present || deterministic()) && now - member.last_turn >= kRepeatAfter) {
    // Who has one of several shards of the step may have lost another.
    Repeat(worker, now);
  }
}

void SyncCoordinator::Join(int64_t worker, int64_t incarnation, Time now) {
  members_[worker] = {incarnation, now, Time()};
  if (!begun_) {
    if (static_cast<int>(members_.size()) >= options_.total_replicas) BeginStep(now);
    return;
  }
  notices_.push_back(StrCat("worker ", worker, " takes part from step ", step_, " on"));
  if (!deterministic()) {
    // Its gradients of the step may have come before it ended; twice would be once too often.
    if (!done_.contains(worker)) Give(worker, worker, now);
    return;
  }
  // What nobody was left to do.
  for (int64_t shard = 0; shard < options_.shards; ++shard) {
    if (!given_.contains(shard)) Give(worker, shard, now);
  }
}

void SyncCoordinator::Leave(int64_t worker, const std::string& why, Time now) {
  members_.erase(worker);
  const std::vector<int64_t> left = active();
  notices_.push_back(
      StrCat("worker ", worker, " ", why, "; ",
             left.empty() ? std::string("nobody is left")
                          : StrCat(WorkersText(left), left.size() == 1 ? " goes on" : " go on"),
             " at step ", step_));
  std::vector<int64_t> orphans;
  for (const auto& [key, owner] : given_) {
    if (owner == worker && !done_.contains(key)) orphans.push_back(key);
  }
  for (const int64_t key : orphans) given_.erase(key);
  if (!deterministic() || left.empty()) return;
  for (size_t i = 0; i < orphans.size(); ++i) Give(left[i % left.size()], orphans[i], now);
}

void SyncCoordinator::Give(int64_t worker, int64_t key, Time now) {
  given_[key] = worker;
  members_[worker].last_turn = now;
  turns_.emplace_back(
      worker, SyncTurn{SyncTurn::kWork, epoch_, step_, deterministic() ? key : int64_t{0}, -1});
}

void SyncCoordinator::Repeat(int64_t worker, Time now) {
  for (const auto& [key, owner] : given_) {
    if (owner == worker && !done_.contains(key)) Give(worker, key, now);
  }
}

void SyncCoordinator::BeginStep(Time now) {
  begun_ = true;
  given_.clear();
  done_.clear();
  step_begin_ = now;
  next_notice_ = now + options_.notice_interval;
  const std::vector<int64_t> workers = active();
  if (workers.empty()) return;
  if (!deterministic()) {
    for (const int64_t worker : workers) Give(worker, worker, now);
    return;
  }
  for (int64_t shard = 0; shard < options_.shards; ++shard) {
    Give(workers[shard % workers.size()], shard, now);
  }
}

void SyncCoordinator::StepApplied(Time now) {
  ++step_;
  BeginStep(now);
}

bool SyncCoordinator::StepIsComplete() const {
  if (!begun_ || done_.empty()) return false;
  if (deterministic()) return static_cast<int>(done_.size()) == options_.shards;
  // Workers who have handed in count though they may have left since.
  const size_t there = std::max(members_.size(), done_.size());
  return done_.size() >= std::min<size_t>(options_.replicas_to_aggregate, there);
}

int64_t SyncCoordinator::FirstMissing() const {
  for (const auto& [key, owner] : given_) {
    if (!done_.contains(key)) return owner;
  }
  return -1;
}

std::string SyncCoordinator::Missing() const {
  std::set<int64_t> missing;
  for (const auto& [key, owner] : given_) {
    if (!done_.contains(key)) missing.insert(owner);
  }
  return missing.empty() ? std::string("a worker to come")
                         : WorkersText({missing.begin(), missing.end()});
}

void SyncCoordinator::Tick(Time now) {
  std::vector<int64_t> silent;
  for (const auto& [worker, member] : members_) {
    if (now - member.last_sign >= options_.lost_after) silent.push_back(worker);
  }
  for (const int64_t worker : silent) {
    Leave(worker,
          StrCat("has given no sign of life for ", SecondsBetween(members_[worker].last_sign, now),
                 " s"),
          now);
  }
  if (!begun_) {
    if (!members_.empty() && now - start_ >= options_.join_deadline) {
      notices_.push_back(StrCat("only ", members_.size(), " of ", options_.total_replicas,
                                " workers came within ", SecondsBetween(start_, now),
                                " s; training begins with ", WorkersText(active())));
      BeginStep(now);
    } else if (now >= next_notice_) {
      next_notice_ = now + options_.notice_interval;
      notices_.push_back(StrCat("waiting for ", options_.total_replicas, " workers, ",
                                SecondsBetween(start_, now), " s now; there are ",
                                members_.empty() ? std::string("none") : WorkersText(active())));
      for (const auto& [worker, member] : members_) {
        turns_.emplace_back(worker, SyncTurn{SyncTurn::kWaiting, epoch_, step_, 0, -1});
      }
    }
    return;
  }
  if (now < next_notice_ || StepIsComplete()) return;
  next_notice_ = now + options_.notice_interval;
  notices_.push_back(StrCat("step ", step_, " waits for ", Missing(), ", ",
                            SecondsBetween(step_begin_, now), " s now"));
  for (const auto& [worker, member] : members_) {
    turns_.emplace_back(worker, SyncTurn{SyncTurn::kWaiting, epoch_, step_, 0, FirstMissing()});
  }
}

void SyncCoordinator::End() {
  for (const auto& [worker, member] : members_) {
    turns_.emplace_back(worker, SyncTurn{SyncTurn::kOver, epoch_, step_, 0, -1});
  }
}

}  // namespace tenon
