// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/device/device_name.h"
#include "distributed/protocol/limits.h"
#include "tests/train/simulated_job.h"

namespace tenon::testing {
namespace {

constexpr Milliseconds kOpeningPause{500};
constexpr Milliseconds kStartUpDeadline{60000};
constexpr Milliseconds kChiefReturnLimit{30000};
constexpr int kMaxRecoveries = 5;
/// A worker that says nothing for so long has died, unless a fault is planted.
constexpr Milliseconds kLostAfter{10000};

}  // namespace

SimulatedTask::SimulatedTask(SimulatedJob& job, int index) : job_(job), index_(index) {
  options_ = job.options();
  options_.task = index;
  options_.notice = [this](const std::string& line) {
    if (line.find("waiting for a turn of the chief") != std::string::npos) {
      told_of_chief_ = job_.world().clock.Now();
    }
    job_.Log(name(), line);
  };
}

std::string SimulatedTask::name() const { return TaskName("worker", index_); }

void SimulatedTask::After(Milliseconds delay, std::function<void()> happens) {
  SimulatedWorld& world = job_.world();
  world.clock.CallAfter(
      delay, [this, &world, process = process_, session = session_, happens = std::move(happens)] {
        if (process != process_ || session != session_ || phase_ == Phase::kDead) return;
        if (const Clock::Time now = world.clock.Now(); now < halted_until_) {
          return After(std::chrono::duration_cast<Milliseconds>(halted_until_ - now), happens);
        }
        happens();
      });
}

void SimulatedTask::Start() {
  if (phase_ != Phase::kDead) return;
  ++process_;
  job_.Log(name(), "starts");
  if (index_ == 0) job_.ChiefStarts();
  phase_ = Phase::kOpening;
  trained_ = 0;
  signalled_ = stop_ = closing_ = has_trained_ = false;
  recoveries_ = 0;
  incarnation_ = job_.world().chance.Between(1, INT64_MAX - 1);
  worker_ = std::make_unique<SyncWorker>(options_, incarnation_,
                                         std::max(1, options_.deterministic_shards));
  BeginOpening(job_.world().chance.Time(100, 3000));
}

void SimulatedTask::Die(const std::string& why) {
  if (phase_ == Phase::kDead) return;
  job_.Log(name(), why);
  phase_ = Phase::kDead;
  died_ = job_.world().clock.Now();
  halted_until_ = {};
  EndSession();
  worker_ = nullptr;
}

void SimulatedTask::Signal() {
  if (phase_ == Phase::kDead || signalled_) return;
  // While a session is opened there is nothing to save, and the signal ends the process.
  if (phase_ == Phase::kOpening && !stop_) return Die("is ended by a signal");
  job_.Log(name(), "gets a signal");
  signalled_ = true;
}

void SimulatedTask::Halt(Milliseconds pause) {
  if (phase_ == Phase::kDead) return;
  job_.Log(name(), "is halted");
  halted_until_ = std::max(halted_until_, job_.world().clock.Now() + pause);
}

bool SimulatedTask::IsHalted() const { return job_.world().clock.Now() < halted_until_; }

void SimulatedTask::EndSession() {
  ++session_;
  waits_since_ = {};
  chief_ = nullptr;
  way_ = nullptr;
}

void SimulatedTask::BeginOpening(Milliseconds pause) {
  phase_ = Phase::kOpening;
  opening_since_ = job_.world().clock.Now() + pause;
  chief_gone_since_.reset();
  After(pause, [this] { Open(); });
}

void SimulatedTask::Open() {
  SimulatedWorld& world = job_.world();
  SimulatedServer& server = world.server;
  const Clock::Time now = world.clock.Now();
  if (server.incarnation == 0) {
    if (now - opening_since_ >= kStartUpDeadline) {
      return End(DeadlineExceeded("the parameter server did not answer"));
    }
    return After(kOpeningPause, [this] { Open(); });
  }
  job_.HearOf(index_, incarnation_);
  if (!server.has_variables && index_ == 0) {
    server.has_variables = true;
    server.step = job_.saved_step();
    server.oldest_taken = server.step;
  }
  if (server.has_variables) return BeginSession();
  if (!job_.chief().is_alive()) {
    if (!chief_gone_since_) chief_gone_since_ = now;
    if (has_trained_ && now - *chief_gone_since_ >= kChiefReturnLimit) {
      return End(DeadlineExceeded("the chief is gone and did not return"));
    }
  } else {
    chief_gone_since_.reset();
  }
  if (now - opening_since_ >= std::chrono::minutes(10)) {
    return End(DeadlineExceeded("the chief did not initialise the variables"));
  }
  After(kOpeningPause, [this] { Open(); });
}

void SimulatedTask::BeginSession() {
  SimulatedWorld& world = job_.world();
  way_ = std::make_unique<SimulatedWay>(world, index_);
  phase_ = Phase::kTraining;
  has_trained_ = true;
  chief_status_ = OkStatus();
  worker_->Begin();
  Status begun = way_->DropTurns();
  if (begun.ok() && index_ == 0) {
    chief_ = std::make_unique<SyncChief>(options_, *way_, world.clock);
    begun = chief_->Start(world.server.step);
    last_round_ = world.clock.Now();
    After(Milliseconds(20), [this] { RunChief(); });
  }
  if (!begun.ok()) return Recover(begun);
  GiveSigns();
  TellThatSessionIsThere();
  Wait();
}

void SimulatedTask::TellThatSessionIsThere() {
  job_.HearOf(index_, incarnation_);
  After(Milliseconds(20000), [this] { TellThatSessionIsThere(); });
}

void SimulatedTask::RunChief() {
  if (chief_ == nullptr || !chief_status_.ok()) return;
  chief_status_ = chief_->Round();
  last_round_ = job_.world().clock.Now();
  After(job_.world().chance.Time(20, 250), [this] { RunChief(); });
}

void SimulatedTask::GiveSigns() {
  std::vector<SyncMessage> signs = worker_->Signs();
  if (job_.world().fault == PlantedFault::kDoneIsSaidOnce) signs.resize(1);
  for (const SyncMessage& sign : signs) way_->Say(sign).IgnoreError();
  After(Milliseconds(1000), [this] { GiveSigns(); });
}

void SimulatedTask::Wait() {
  waits_since_ = job_.world().clock.Now();
  worker_->BeginWait(waits_since_);
  Look(SyncWorker::Next::kTakeTurn);
}

void SimulatedTask::Look(SyncWorker::Next next) {
  using Next = SyncWorker::Next;
  SimulatedWorld& world = job_.world();
  if (chief_ != nullptr && !chief_status_.ok()) return Recover(chief_status_);
  if (stop_ || signalled_) return AfterWait();
  StatusOr<Next> found = Next::kTakeTurn;
  if (next == Next::kReadRecord) {
    std::optional<SyncRecord> record;
    if (chief_ == nullptr) {
      const auto read = way_->ReadRecord();
      if (!read.ok()) return Recover(read.status());
      record = *read;
    }
    found = worker_->Read(record);
  } else {
    const auto taken = way_->TakeTurn(Milliseconds(250));
    if (!taken.ok()) return Recover(taken.status());
    if (*taken) waits_since_ = world.clock.Now();
    found = *taken ? worker_->Receive((*taken)->turn, (*taken)->has_next, world.clock.Now())
                   : worker_->HearNothing(world.clock.Now());
  }
  for (const std::string& line : worker_->TakeNotices()) options_.notice(line);
  if (!found.ok()) return End(found.status());
  if (*found == Next::kEnd) stop_ = true;
  if (*found == Next::kEnd || *found == Next::kWork) return AfterWait();
  After(world.chance.Time(20, 250), [this, next = *found] { Look(next); });
}

void SimulatedTask::AfterWait() {
  waits_since_ = {};
  const Status reached = way_->Reach();
  if (!reached.ok()) return Recover(reached);
  if (job_.world().server.step >= job_.world().last_step) stop_ = true;
  if (stop_ || signalled_) return CloseSession();
  worker_->TurnAsked();
  Work();
}

void SimulatedTask::Work() {
  SimulatedWorld& world = job_.world();
  After(world.chance.Time(0, 50), [this, &world] {
    const int64_t read = world.server.step;
    After(world.chance.Time(20, 1000), [this, read] {
      const std::optional<SyncMessage> done = worker_->BeginRun();
      const Status run = done ? way_->HandIn(*done, read) : way_->Reach();
      if (!run.ok()) return Recover(run);
      recoveries_ = 0;
      if (worker_->EndRun(done.has_value()) == SyncWorker::Next::kWork) return AfterWait();
      Wait();
    });
  });
}

void SimulatedTask::Recover(const Status& error) {
  job_.Log(name(), error.ToString());
  EndSession();
  if ((stop_ || signalled_) && !closing_) return End(error);
  if (recoveries_ >= kMaxRecoveries) return End(error);
  BeginOpening(Milliseconds(1000 << recoveries_++));
}

void SimulatedTask::CloseSession() {
  SimulatedWorld& world = job_.world();
  const bool is_interrupted = signalled_ && !stop_;
  if (index_ == 0 && !is_interrupted && world.server.step < trained_) {
    return End(DataLoss("the parameter server has lost what was trained"));
  }
  trained_ = world.server.step;
  closing_ = true;
  stop_ = stop_ || !is_interrupted;
  Status closed;
  if (chief_ != nullptr && is_interrupted && world.fault != PlantedFault::kSignalEndsTraining) {
    chief_->Leave();
  } else if (chief_ != nullptr) {
    chief_->RequestStop();
    closed = chief_status_.ok() ? chief_->Finish() : chief_status_;
  }
  closed.Update(way_->Say(worker_->Left()));
  if (closed.ok() && index_ == 0) {
    closed = way_->Reach();
    if (closed.ok()) job_.Save();
  }
  if (!closed.ok()) return Recover(closed);
  EndSession();
  End(OkStatus());
}

void SimulatedTask::End(const Status& status) {
  SimulatedWorld& world = job_.world();
  const bool is_interrupted = signalled_ && status.ok();
  EndSession();
  phase_ = Phase::kReporting;
  if (status.ok() && !signalled_ && !job_.HasTrained()) {
    world.Violate(StrCat(name(), " ends well before the last step"));
  }
  if (!status.ok()) job_.CheckFailure(index_, status);
  const Status end = is_interrupted ? Cancelled("ended by a signal") : status;
  After(world.chance.Time(10, 500), [this, end] {
    job_.Report(index_, end);
    Die(StrCat("has ended: ", end.ToString()));
  });
}

void SimulatedTask::Check() {
  const Clock::Time now = job_.world().clock.Now();
  if (phase_ == Phase::kDead || IsHalted()) {
    checked_since_ = now;
    return;
  }
  constexpr std::chrono::milliseconds kNoticed = kNoticePause + Milliseconds(1000);
  const Clock::Time since = std::max(waits_since_, checked_since_);
  if (waits_since_ != Clock::Time() && index_ != 0 && now - since > kNoticed &&
      now - told_of_chief_ > kNoticed) {
    job_.world().Violate(StrCat(name(), " waits for the chief and does not say so"));
  }
  if (chief_ == nullptr || !chief_status_.ok() || now - last_round_ > Milliseconds(1000)) return;
  for (const int64_t worker : chief_->coordinator().active()) {
    const SimulatedTask& other = job_.task(static_cast<int>(worker));
    const Clock::Time from = std::max(other.died_, checked_since_);
    if (!other.is_alive() && now - from > kLostAfter + Milliseconds(5000)) {
      job_.world().Violate(StrCat("the chief waits for ", other.name(), ", which is dead"));
    }
  }
}

}  // namespace tenon::testing
