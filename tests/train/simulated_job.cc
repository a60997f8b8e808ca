// SPDX-License-Identifier: Apache-2.0
#include "tests/train/simulated_job.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/device/device_name.h"

namespace tenon::testing {
namespace {

constexpr Milliseconds kWorkerTimeout{60000}, kComing{20000};
/// The last incident comes before, and all is over so long after it.
constexpr int64_t kStormMs = 40000;
constexpr std::chrono::minutes kCalm{20};

}  // namespace

SimulatedJob::SimulatedJob(uint64_t seed, PlantedFault fault, bool with_log)
    : world_(seed, fault), with_log_(with_log) {
  DrawTraining();
  for (int task = 0; task < options_.total_num_replicas; ++task) {
    tasks_.push_back(std::make_unique<SimulatedTask>(*this, task));
    TENON_CHECK(cluster_.AddTask("worker", task, StrCat("host:", task + 1)).ok());
  }
  named_.resize(tasks_.size());
}

void SimulatedJob::Log(const std::string& who, const std::string& what) {
  if (!with_log_) return;
  outcome_.log += absl::StrFormat("%8.3f %s: %s\n", world_.Seconds(), who, what);
}

void SimulatedJob::DrawTraining() {
  Chance& chance = world_.chance;
  const int workers = static_cast<int>(chance.Between(2, 4));
  options_.total_num_replicas = workers;
  if (chance.Happens(400)) {
    options_.deterministic_shards = static_cast<int>(workers * chance.Between(1, 2));
  } else if (chance.Happens(300)) {
    options_.replicas_to_aggregate = static_cast<int>(chance.Between(1, workers));
  }
  if (world_.fault == PlantedFault::kNobodyIsLost) options_.lost_after = std::chrono::hours(100);
  world_.last_step = chance.Between(3, 12);
  constexpr int kLosses[] = {0, 0, 20, 150};
  world_.weather.lost = kLosses[chance.Between(0, 3)];
  world_.weather.doubled = kLosses[chance.Between(0, 3)];
  constexpr int kFailures[] = {0, 0, 3, 30};
  world_.weather.failed = kFailures[chance.Between(0, 3)];
  constexpr int64_t kSlowest[] = {5, 100, 400, 3000};
  world_.weather.slowest = Milliseconds(kSlowest[chance.Between(0, 3)]);
}

void SimulatedJob::DrawIncidents() {
  Chance& chance = world_.chance;
  for (const auto& task : tasks_) {
    const bool late = chance.Happens(100);
    ++starts_left_;
    world_.clock.CallAfter(chance.Time(0, late ? 20000 : 1000), [this, &task = *task] {
      --starts_left_;
      task.Start();
    });
  }
  const int64_t incidents = chance.Between(0, 3);
  for (int64_t i = 0; i < incidents; ++i) {
    ++starts_left_;
    world_.clock.CallAfter(chance.Time(1000, kStormMs), [this] {
      DrawIncident();
      --starts_left_;
    });
  }
}

void SimulatedJob::DrawIncident() {
  Chance& chance = world_.chance;
  SimulatedTask& task = *tasks_[chance.Between(0, options_.total_num_replicas - 1)];
  const auto restart = [&](Milliseconds earliest, std::function<void()> start) {
    ++starts_left_;
    world_.clock.CallAfter(earliest + chance.Time(500, chance.Happens(200) ? 60000 : 8000),
                           [this, start = std::move(start)] {
                             --starts_left_;
                             start();
                           });
  };
  const int64_t kind = chance.Between(0, 99);
  if (kind < 30) {
    task.Die("is killed");
    if (chance.Happens(800)) restart(Milliseconds(0), [&task] { task.Start(); });
  } else if (kind < 65) {
    task.Signal();
    // The same command is given again when the process has ended.
    if (chance.Happens(800)) restart(Milliseconds(4000), [&task] { task.Start(); });
  } else if (kind < 85) {
    task.Halt(chance.Time(500, 60000));
  } else if (kind < 95) {
    KillServer();
    if (chance.Happens(800)) restart(Milliseconds(0), [this] { StartServer(); });
  } else {
    // Ctrl-C on the whole job.
    Log("all", "get a signal");
    for (const auto& each : tasks_) each->Signal();
    is_to_end_ = true;
    if (job_end_ != nullptr && !job_end_->ExpectEnd("worker")) {
      over_ = true;
      KillServer();
    }
    LookAtEndAfter(Clock::Duration(0));
  }
}

void SimulatedJob::StartServer() {
  SimulatedServer& server = world_.server;
  if (over_ || server.incarnation != 0) return;
  Log("ps", "starts");
  server = {};
  server.incarnation = ++servers_;
  server.turns.resize(tasks_.size());
  server.accumulators.resize(std::max(1, options_.deterministic_shards));
  server_since_ = world_.clock.Now();
  is_to_end_ = false;
  job_end_ = std::make_unique<JobEnd>(
      cluster_, world_.clock,
      [this](const std::string&, int task, auto done) { Probe(task, std::move(done)); },
      [this](const std::string& line) {
        Log("ps", line);
        for (size_t task = 0; task < tasks_.size(); ++task) {
          if (line.find(tasks_[task]->name()) != std::string::npos) {
            named_[task] = world_.clock.Now();
          }
        }
      });
  watch_.emplace("worker", JobPatience{kWorkerTimeout, kComing}, world_.clock.Now());
  LookAtEndAfter(Clock::Duration(0));
}

void SimulatedJob::KillServer() {
  if (world_.server.incarnation == 0) return;
  Log("ps", "is gone");
  world_.server = {};
  job_end_ = nullptr;
}

void SimulatedJob::HearOf(int task, int64_t incarnation) {
  if (job_end_ == nullptr) return;
  const bool stands = world_.fault == PlantedFault::kReportStands;
  const std::vector<std::string> ended = job_end_->Ended();
  const std::string name = tasks_[task]->name();
  if (stands && std::find(ended.begin(), ended.end(), name) != ended.end()) return;
  job_end_->Heard(name, incarnation);
  LookAtEndAfter(Clock::Duration(0));
}

void SimulatedJob::Report(int task, const Status& end) {
  if (job_end_ == nullptr) return;
  TENON_CHECK(job_end_->Report("worker", task, end).ok());
  if (task == 0 && end.ok()) chief_ended_well_on_ = world_.server.incarnation;
  LookAtEndAfter(Clock::Duration(0));
}

void SimulatedJob::Probe(int task, std::function<void(const Status& life)> done) {
  const auto answer = [this, done = std::move(done), server = servers_](const Status& life) {
    return [this, done, server, life] {
      const bool asks = job_end_ != nullptr && server == servers_;
      if (asks) done(world_.fault == PlantedFault::kSilenceIsLife ? OkStatus() : life);
    };
  };
  const SimulatedTask& asked = *tasks_[task];
  if (!asked.is_alive()) {
    world_.clock.CallAfter(world_.chance.Time(1, 100), answer(Unavailable("connection refused")));
  } else if (asked.IsHalted()) {
    world_.clock.CallAfter(Milliseconds(2000), answer(DeadlineExceeded("no answer in 2 s")));
  } else {
    world_.clock.CallAfter(world_.chance.Time(1, 300), answer(OkStatus()));
  }
}

void SimulatedJob::LookAtEnd() {
  if (job_end_ == nullptr || over_) return;
  if (const auto verdict = job_end_->Look(*watch_)) return EndServer(*verdict);
  LookAtEndAfter(watch_->next() - world_.clock.Now());
}

void SimulatedJob::LookAtEndAfter(Clock::Duration pause) {
  world_.clock.CallAfter(pause, [this, look = ++looks_] {
    if (look == looks_) LookAtEnd();
  });
}

void SimulatedJob::EndServer(const Status& verdict) {
  Log("ps", StrCat("the job has ended: ", verdict.ToString()));
  over_ = true;
  outcome_.ended_well = verdict.ok();
  const std::string message(verdict.message());
  bool names_any = false;
  for (const auto& task : tasks_) {
    const bool works = task->has_session() && !task->IsHalted();
    const bool is_named = message.find(task->name()) != std::string::npos;
    names_any |= is_named;
    if (verdict.ok() && task->has_session()) {
      world_.Violate(StrCat("the job ends though ", task->name(), " is at work"));
    }
    if (verdict.code() == StatusCode::kDeadlineExceeded && is_named && works) {
      world_.Violate(StrCat(task->name(), " is at work, and is given up: ", message));
    }
  }
  if (!verdict.ok() && !names_any) world_.Violate(StrCat("nobody is named: ", message));
  if (!verdict.ok()) {
    for (const auto& task : tasks_) task->Die("is ended by the parameter server");
  }
  KillServer();
}

void SimulatedJob::CheckFailure(int task, const Status& status) {
  const bool waited = status.message().find("for a turn of the chief") != std::string_view::npos;
  if (waited && chief_ended_well_on_ == world_.server.incarnation &&
      world_.server.incarnation != 0) {
    world_.Violate(StrCat(tasks_[task]->name(), " waits for a chief that has ended well"));
  }
}

void SimulatedJob::Check() {
  const Clock::Time now = world_.clock.Now();
  reached_ = std::max(reached_, world_.server.step);
  for (const auto& task : tasks_) task->Check();
  world_.clock.CallAfter(Milliseconds(1000), [this] { Check(); });
  if (job_end_ == nullptr || is_to_end_) return;
  constexpr Milliseconds kNoticed{15000};
  for (const auto& [index, known] : job_end_->NotEnded("worker")) {
    const SimulatedTask& task = *tasks_[index];
    const Clock::Time since = std::max({task.died(), server_since_, named_[index]});
    if (!task.is_alive() && now - since > kNoticed) {
      world_.Violate(StrCat("the parameter server waits for ", task.name(),
                            ", which is dead, and does not say so"));
    }
  }
}

bool SimulatedJob::AllIsOver() const {
  if (starts_left_ > 0 || (!over_ && world_.server.incarnation != 0)) return false;
  return std::none_of(tasks_.begin(), tasks_.end(),
                      [](const auto& task) { return task->is_alive(); });
}

SimulatedOutcome SimulatedJob::Run() {
  DrawIncidents();
  StartServer();
  Check();
  const Clock::Time limit = world_.clock.Now() + Milliseconds(kStormMs) + kCalm;
  while (!AllIsOver() && world_.violation.empty()) {
    if (!world_.clock.RunNext(limit)) {
      std::string left = world_.server.incarnation != 0 ? "ps" : "";
      for (const auto& task : tasks_) {
        if (task->is_alive()) StrAppend(&left, left.empty() ? "" : ", ", task->name());
      }
      world_.Violate(StrCat("it does not end: ", left));
    }
  }
  outcome_.violation = world_.violation;
  outcome_.updates = world_.updates;
  return std::move(outcome_);
}

SimulatedOutcome RunSimulatedTraining(uint64_t seed, PlantedFault fault, bool with_log) {
  return SimulatedJob(seed, fault, with_log).Run();
}

}  // namespace tenon::testing
