// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "distributed/protocol/server.h"
#include "runtime/device/machine.h"
#include "train/sessions/hooks.h"
#include "train/sessions/session_starter.h"
#include "train/sessions/signal_watch.h"
#include "train/sessions/stop_signal.h"

namespace tenon {

/// Options of Supervisor, by name.
struct SupervisorOptions {
  /// See SessionStarterOptions.
  bool is_chief = true;
  std::chrono::milliseconds recovery_wait{200};
  std::chrono::milliseconds ready_deadline{std::chrono::minutes(10)};
  std::function<void(const std::string& line)> notice = {};
  std::chrono::milliseconds notice_interval{5000};
  std::string checkpoint_dir = {};
  /// Restores, and with a checkpoint_dir saves: the chief each `save_model_period`, and at Stop.
  Saver* saver = nullptr;
  std::chrono::milliseconds save_model_period{std::chrono::minutes(10)};
  std::string checkpoint_basename = "model.ckpt";
  /// Ctrl-C and SIGTERM make ShouldStop true.
  bool stop_on_signals = true;
  /// The clock by which it waits, and what it starts threads by; must outlive it.
  Clock* clock = &MachineClock();
  ThreadStarter* threads = &MachineThreads();
  /// Where mistakes are reported.
  std::source_location location = std::source_location::current();
};

/// Starts training sessions so that replicas agree on who initialises, and saves in the background
/// (tf.train.Supervisor). For programs that run their steps in several threads, or with prepared
/// steps; MonitoredTrainingSession has hooks and recovers.
///
///   Supervisor supervisor({.is_chief = task == 0});
///   auto session = supervisor.PrepareOrWaitForSession(*server, graph);
///   while (!supervisor.ShouldStop()) ...
///   supervisor.Stop();
class Supervisor {
 public:
  /// Adds the nodes it needs to the graph that is being built; see SessionStarter.
  explicit Supervisor(SupervisorOptions options);
  ~Supervisor();

  /// A session of `open` in which every variable has a value; see SessionStarter::Prepare. The
  /// chief saves from then on, and holds the session for that until Stop or its destruction. Before
  /// that it finds out whether it can write in checkpoint_dir: see CheckCheckpointDirectory for the
  /// error.
  StatusOr<std::shared_ptr<Session>> PrepareOrWaitForSession(const SessionOpener& open);
  /// The same on the cluster of `server`. From then on, until Stop, a signal ends the process where
  /// a task of it does not answer (see SignalWatch). With a sharded saver the chief finds out
  /// whether all tasks that save see checkpoint_dir (see ProbeCheckpointDirectory).
  StatusOr<std::shared_ptr<Session>> PrepareOrWaitForSession(Server& server, const Graph& graph);

  /// Thread-safe.
  bool ShouldStop() const { return stop_ || StopSignal::received() != 0; }
  void RequestStop() { stop_ = true; }
  /// Saves for the last time, and ends the thread that saves: the error of the last save, or why
  /// training was stopped. A save in between that fails is said, and the next one is tried; see
  /// SaveFailures for when they are too many.
  Status Stop();
  /// The step of the checkpoint that Stop has written; -1 when it has written none.
  int64_t saved_step() const { return saved_step_; }

 private:
  /// Whether it is who saves.
  bool saves() const;
  StatusOr<int64_t> Step(Session& session) const;
  Status Save(Session& session, int64_t step);
  void SavePeriodically(Session& session);

  const SupervisorOptions options_;
  const SessionStarter starter_;
  std::string step_;
  std::atomic<bool> stop_{false};
  std::shared_ptr<Session> session_;  // that is saved from
  std::unique_ptr<StopSignal> signal_;
  std::unique_ptr<SignalWatch> watch_;
  std::optional<SignalWatch::Work> work_;  // what is watched
  SaveFailures failures_;
  std::unique_ptr<ThreadStarter::Work> saving_;
  std::string last_saved_;  // by the thread that saves, and by Stop after it
  int64_t saved_step_ = -1;
  Status why_stopped_;  // by the thread that saves, which Stop waits for
};

}  // namespace tenon
