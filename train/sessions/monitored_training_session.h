// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash_map.h"
#include "runtime/device/machine_clock.h"
#include "train/sessions/session_hook.h"
#include "train/sessions/session_starter.h"
#include "train/sessions/signal_watch.h"
#include "train/sessions/stop_signal.h"

namespace tenon {

class Communicator;
class Server;

/// Options of MonitoredTrainingSession, by name.
struct MonitoredTrainingSessionOptions {
  /// Where the session is: on this server's cluster, or in this process when null. Must outlive it.
  Server* server = nullptr;
  /// One worker is the chief: it initialises or restores the variables, and writes checkpoints and
  /// summaries.
  bool is_chief = true;
  /// Checkpoints and event files; empty: none. On a cluster all tasks with variables must see it,
  /// which is tried at the start: FailedPrecondition names those that do not.
  std::string checkpoint_dir = {};
  /// A checkpoint each so many steps; 0: by time.
  int64_t save_checkpoint_steps = 0;
  std::chrono::milliseconds save_checkpoint_period{std::chrono::minutes(10)};
  /// Summaries of the graph's collection "summaries" each so many steps, and the rate of steps; 0:
  /// never.
  int64_t save_summaries_steps = 100;
  /// A line for people with the step and the rate each so many steps; 0: never.
  int64_t log_step_count_steps = 0;
  /// The hooks of every worker, and those of the chief alone.
  std::vector<std::shared_ptr<SessionHook>> hooks = {}, chief_only_hooks = {};
  /// Saves and restores; null: one of all variables, sharded on a cluster, as tf.train.Scaffold
  /// makes it. Must outlive the session.
  Saver* saver = nullptr;
  /// See SessionStarterOptions.
  std::function<Status(Session&)> init_fn = {};
  std::chrono::milliseconds ready_deadline{std::chrono::minutes(10)};
  /// A step that fails with Aborted or Unavailable (a task has died, or was started anew) is run
  /// again in a new session. After this many recoveries without a step between them the error is
  /// returned; the pauses before them are 1, 2, 4, ... s, at most 30.
  int max_recoveries = 5;
  std::chrono::milliseconds first_pause{1000};
  /// Ctrl-C and SIGTERM end training in good order: ShouldStop is true after the present step.
  bool stop_on_signals = true;
  /// How long that step has, on a cluster (see SignalWatch): then it is given up, the chief saves,
  /// and Run is Cancelled; where a task does not answer, the process ends by the signal. In a
  /// process alone the step is waited for, which is said as often.
  std::chrono::milliseconds interrupted_step_limit{5000};
  /// The ranks that the steps of a training by allreduce speak to; must outlive it. The session is
  /// then in this process, and a step that fails is not run again; signals are up to the hooks
  /// (KeepRanksInStep). Only rank 0 is given a checkpoint_dir. When the data of one rank have come
  /// to their end, or it calls Close, the present step is the last one of all: Run is OutOfRange on
  /// each, none has applied that step, and the ranks can speak to each other again.
  Communicator* communicator = nullptr;
  /// Gets lines for people, from any thread; may be null.
  std::function<void(const std::string& line)> notice = {};
  /// The clock by which it waits and measures, what it starts threads by, and where its hooks have
  /// random numbers from; must outlive it.
  Clock* clock = &MachineClock();
  ThreadStarter* threads = &MachineThreads();
  Entropy* entropy = &MachineEntropy();
  std::source_location location = std::source_location::current();
};

/// Runs the steps of a training that lasts (tf.train.MonitoredTrainingSession): begins with the
/// latest checkpoint, saves as it goes and at the end, calls hooks around each step, survives the
/// deaths of tasks, and ends when a hook, a signal or the end of the data says so.
///
///   TENON_ASSIGN_OR_RETURN(auto session, MonitoredTrainingSession::Start(
///       {.checkpoint_dir = "/data/run", .hooks = {StopAtStep(1000)}}));
///   while (!session->ShouldStop()) {
///     TENON_RETURN_IF_ERROR(session->Run({{x, batch}}, {}, {train}).status());
///   }
///   TENON_RETURN_IF_ERROR(session->Close());
///
/// Used by one thread at a time.
class MonitoredTrainingSession {
 public:
  /// Adds what it needs to the graph that is being built, which must outlive it, and opens the
  /// session; nothing may be added to the graph afterwards. The errors of hooks, of the graph, and
  /// of SessionStarter::Prepare.
  static StatusOr<std::unique_ptr<MonitoredTrainingSession>> Start(
      const MonitoredTrainingSessionOptions& options = {});
  /// Closes without the hooks' End: a training that failed leaves its last good checkpoint.
  ~MonitoredTrainingSession();

  /// Whether training is to end: a hook or a signal has asked for it, or a step has found the end
  /// of its data.
  bool ShouldStop() const {
    return stop_ || (options_.communicator == nullptr && StopSignal::received() != 0);
  }
  void RequestStop() { stop_ = true; }

  /// A step, with those of the hooks. OutOfRange, at the end of the data, makes ShouldStop true.
  /// FailedPrecondition after the end of the data, and after a step that ended with ShouldStop
  /// true. Where a signal is the reason steps go on for `interrupted_step_limit`; then the chief
  /// saves, and Run is Cancelled.
  StatusOr<std::vector<Tensor>> Run(const StepFeeds& feeds, const StepTensors& fetches,
                                    const StepTensors& targets = {});
  /// The same for one fetch; see Session::Run.
  template <typename T>
  StatusOr<T> Run(const StepFeeds& feeds, const StepTensor& fetch,
                  const StepTensors& targets = {}) {
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                           Run(feeds, StepTensors{fetch}, targets));
    return ValueAs<T>(values[0], fetch.name());
  }

  /// A step that the hooks do not see, such as an evaluation (run_step_fn). It recovers as Run
  /// does.
  StatusOr<std::vector<Tensor>> RunWithoutHooks(const StepFeeds& feeds, const StepTensors& fetches,
                                                const StepTensors& targets = {});
  /// The same for one fetch; see Session::Run.
  template <typename T>
  StatusOr<T> RunWithoutHooks(const StepFeeds& feeds, const StepTensor& fetch,
                              const StepTensors& targets = {}) {
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                           RunWithoutHooks(feeds, StepTensors{fetch}, targets));
    return ValueAs<T>(values[0], fetch.name());
  }
  /// The step counter as the last step, or the start, read it, which may be before that step
  /// counted itself, except for the last one of all and after Close; -1 when the graph has none.
  int64_t global_step() const { return global_step_; }

  /// Calls the hooks' End, which writes the last checkpoint, and closes the session; in a new one
  /// when a task has died, as Run does. Later steps are FailedPrecondition.
  Status Close();

 private:
  explicit MonitoredTrainingSession(const MonitoredTrainingSessionOptions& options);

  Status Build();
  /// The counter's value before what else runs in the step counts, whichever memory it is in.
  Output StepBeforeItCounts(const VariableEntry& counter);
  /// Whether all tasks that save see the directory of checkpoints.
  Status ProbeDirectory() const;
  Status Open();
  /// The hooks' End, and EndSession.
  Status End();
  RunContext Context(std::vector<std::string> nodes = {}) {
    return {*session_,
            {*options_.clock, *options_.threads, *options_.entropy},
            global_step_name_,
            &stop_,
            {.is_alone = options_.server == nullptr, .is_interrupted = interrupted_},
            std::move(nodes)};
  }
  /// Closes the session and tells the hooks.
  Status EndSession();
  /// Whether a new session may help. The connections of ranks that have failed stay so.
  bool Recovers(const Status& error) const {
    return options_.communicator == nullptr && IsRecoverable(error);
  }
  /// Waits before the next recovery; `error` when there is to be none.
  Status Pause(const Status& error);
  /// The step, prepared; a traced one is too.
  StatusOr<PreparedStep*> StepFor(const Session::Feeds& feeds,
                                  const std::vector<std::string>& fetches,
                                  const std::vector<std::string>& targets);
  /// The end of the data: training is to end, on all ranks together.
  void EndOfData(const Status& why);
  /// Runs a step, which is given up when it takes long after a signal.
  Status Watched(const std::function<Status()>& run);
  /// The error of a step that is asked for when training is to have ended.
  Status CheckGoesOn();
  /// A step was given up after a signal: saves what there is, and says how that went.
  Status EndGivenUp();
  /// The end after a signal: Cancelled, with "<what>5 s<consequence>" and what became of the last
  /// checkpoint, which `save` writes.
  Status Interrupted(std::string_view what, std::string_view consequence,
                     const std::function<Status()>& save);
  /// Repeats `attempt` in new sessions until it fails for good.
  Status Recovering(const std::function<Status()>& attempt);
  /// One attempt at a step.
  Status RunOnce(const StepFeeds& feeds, const StepTensors& fetches, const StepTensors& targets,
                 std::vector<Tensor>* fetched);

  const MonitoredTrainingSessionOptions options_;
  Graph& graph_;
  std::unique_ptr<StopSignal> signal_;
  std::unique_ptr<Saver> own_saver_;
  std::vector<std::shared_ptr<SessionHook>> hooks_;
  std::unique_ptr<SessionStarter> starter_;
  std::string global_step_name_;
  std::unique_ptr<Session> session_;
  bool has_trained_ = false;  // there was a session in which every variable had a value
  StringMap<std::unique_ptr<PreparedStep>> steps_;  // by what they are fed, fetch and run
  std::atomic<bool> stop_{false};
  bool closed_ = false;
  bool interrupted_ = false;  // a signal, and nobody else, has ended it
  int64_t global_step_ = -1;
  int recoveries_ = 0;
  std::unique_ptr<SignalWatch> watch_;  // null when signals do not stop it
  bool given_up_ = false;
  bool has_ended_ = false;                // no Run is to follow: see its FailedPrecondition
  bool has_ended_together_ = false;       // the other ranks know of it
  std::optional<Clock::Time> signalled_;  // the first step after that
};

}  // namespace tenon
