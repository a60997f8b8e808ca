// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distributed/protocol/job_end.h"
#include "tests/train/simulated_servers.h"
#include "train/sync/sync_chief.h"
#include "train/sync/sync_worker.h"

namespace tenon::testing {

class SimulatedJob;

/// A worker, from the start of one of its processes to the end of the last. Worker 0 is the chief.
class SimulatedTask {
 public:
  SimulatedTask(SimulatedJob& job, int index);

  /// A new process, unless there is one.
  void Start();
  /// The process is gone, from one moment to the next.
  void Die(const std::string& why);
  /// SIGTERM.
  void Signal();
  /// SIGSTOP, and SIGCONT after `pause`.
  void Halt(Milliseconds pause);

  std::string name() const;
  bool is_alive() const { return phase_ != Phase::kDead; }
  bool IsHalted() const;
  /// Whether it trains in a session of the server that is there now.
  bool has_session() const { return way_ != nullptr && way_->IsThere(); }
  Clock::Time died() const { return died_; }
  /// Looks for breaches of the invariants that concern waiting.
  void Check();

 private:
  enum class Phase { kDead, kOpening, kTraining, kReporting };

  /// Has the process do something later, in the session of now, if there is any.
  void After(Milliseconds delay, std::function<void()> happens);
  void BeginOpening(Milliseconds pause);
  void Open();
  void BeginSession();
  void EndSession();
  void TellThatSessionIsThere();
  void RunChief();
  void GiveSigns();
  void Wait();
  void Look(SyncWorker::Next next);
  void AfterWait();
  void Work();
  void Recover(const Status& error);
  void CloseSession();
  /// The program has ended; the server is told.
  void End(const Status& status);

  SimulatedJob& job_;
  const int index_;
  SyncReplicasOptions options_;
  int64_t process_ = 0, session_ = 0;  // count them
  Phase phase_ = Phase::kDead;
  Clock::Time died_, halted_until_, opening_since_;
  int64_t incarnation_ = 0;
  bool signalled_ = false, stop_ = false, closing_ = false, has_trained_ = false;
  int recoveries_ = 0;
  int64_t trained_ = 0;  // the step at the first try of the end
  std::optional<Clock::Time> chief_gone_since_;
  std::unique_ptr<SyncWorker> worker_;
  std::unique_ptr<SimulatedWay> way_;
  std::unique_ptr<SyncChief> chief_;
  Status chief_status_;
  // For Check.
  Clock::Time waits_since_, told_of_chief_, last_round_, checked_since_;
};

/// A parameter server and its workers, from their start to the end of all.
class SimulatedJob {
 public:
  SimulatedJob(uint64_t seed, PlantedFault fault, bool with_log);

  /// Runs it; see RunSimulatedTraining.
  SimulatedOutcome Run();

  SimulatedWorld& world() { return world_; }
  const SyncReplicasOptions& options() const { return options_; }
  SimulatedTask& task(int index) { return *tasks_[index]; }
  SimulatedTask& chief() { return *tasks_[0]; }
  int64_t saved_step() const { return saved_step_; }
  void Save() { saved_step_ = std::max(saved_step_, world_.server.step); }
  /// Whether the training has come to its last step, ever.
  bool HasTrained() const { return std::max(reached_, world_.server.step) >= world_.last_step; }

  /// A session of the task's process is there.
  void HearOf(int task, int64_t incarnation);
  void Report(int task, const Status& end);
  void ChiefStarts() { chief_ended_well_on_.reset(); }
  /// A task fails: whether there was reason to.
  void CheckFailure(int task, const Status& status);
  void Log(const std::string& who, const std::string& what);

 private:
  void DrawTraining();
  void DrawIncidents();
  void DrawIncident();
  void StartServer();
  void KillServer();
  /// Does what the server's wait for the end of the job wants, and again when that is due.
  void LookAtEnd();
  void LookAtEndAfter(Clock::Duration pause);
  void Probe(int task, std::function<void(const Status& life)> done);
  void EndServer(const Status& verdict);
  /// Looks for breaches of the invariants, each second.
  void Check();
  bool AllIsOver() const;

  SimulatedWorld world_;
  const bool with_log_;
  SimulatedOutcome outcome_;
  SyncReplicasOptions options_;
  ClusterSpec cluster_;
  std::vector<std::unique_ptr<SimulatedTask>> tasks_;
  int64_t saved_step_ = 0, reached_ = 0;
  int64_t starts_left_ = 0;  // that are still to come
  // The server's process.
  int64_t servers_ = 0;
  std::unique_ptr<JobEnd> job_end_;
  std::optional<JobEnd::Watch> watch_;
  Clock::Time server_since_;
  int64_t looks_ = 0;
  bool over_ = false;
  bool is_to_end_ = false;                      // the server was told so, and expects nobody back
  std::vector<Clock::Time> named_;              // by task, by the server's notices
  std::optional<int64_t> chief_ended_well_on_;  // the server's incarnation
};

}  // namespace tenon::testing
