// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/entropy.h"
#include "core/base/thread_starter.h"
#include "runtime/session/session.h"

namespace tenon {

/// What a hook adds to a step, or wants of it.
struct RunArguments {
  Session::Feeds feeds = {};
  std::vector<std::string> fetches = {}, targets = {};
  /// Record what every node did; the record is in RunValues.
  bool trace = false;
};

/// What came of it, for one hook.
struct RunValues {
  std::vector<Tensor> fetched;   // its fetches
  std::vector<NodeTrace> trace;  // when any hook asked for it
  int64_t global_step = -1;      // before what ran in the step counted; -1: there is no counter
};

/// Whether a MonitoredTrainingSession goes on in a new session after this error: a task has died,
/// or was started anew.
inline bool IsRecoverable(const Status& status) {
  return status.code() == StatusCode::kAborted || status.code() == StatusCode::kUnavailable;
}

/// The number in a step counter, an integer or floating scalar; InvalidArgument for others.
StatusOr<int64_t> StepOf(const Tensor& counter);

/// The step that is about to run, or has run.
class RunContext {
 public:
  struct Circumstances {
    bool is_alone = true;         // no other process runs steps on the same variables
    bool is_interrupted = false;  // a signal ends this process, not the training
  };
  /// What the training takes from the machine.
  struct Machine {
    Clock& clock;
    ThreadStarter& threads;
    Entropy& entropy;
  };
  /// `global_step` is the name of the step counter's value; empty: there is none.
  RunContext(Session& session, const Machine& machine, std::string global_step,
             std::atomic<bool>* stop, const Circumstances& circumstances,
             std::vector<std::string> nodes = {})
      : session_(session),
        machine_(machine),
        global_step_(std::move(global_step)),
        stop_(*stop),
        circumstances_(circumstances),
        nodes_(std::move(nodes)) {}

  /// For steps of the hook's own.
  Session& session() const { return session_; }
  /// The clock by which the training waits and measures.
  Clock& clock() const { return machine_.clock; }
  /// What starts that which runs beside the steps.
  ThreadStarter& threads() const { return machine_.threads; }
  /// The source of what tells this process from others.
  Entropy& entropy() const { return machine_.entropy; }
  /// No step follows this one: ShouldStop of the session is true from now on.
  void RequestStop() const { stop_ = true; }
  bool stop_requested() const { return stop_; }
  const Circumstances& circumstances() const { return circumstances_; }
  /// Whether the program, not a hook, runs this node in the step as a target.
  bool Runs(std::string_view node) const {
    return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
  }
  /// The step counter now, after the step; -1 when there is none.
  StatusOr<int64_t> ReadGlobalStep() const;

 private:
  Session& session_;
  const Machine machine_;
  const std::string global_step_;
  std::atomic<bool>& stop_;
  const Circumstances circumstances_;
  const std::vector<std::string> nodes_;
};

/// What happens beside the steps of a MonitoredTrainingSession (tf.train.SessionRunHook). Calls
/// come from the thread that runs the session, in the order of the hooks. An error ends the call
/// that the hook was called in, but for End, which all get. The order: Begin once; then, and after
/// each recovery, AfterCreateSession; BeforeRun and AfterRun around each step; End when the
/// session is closed in good order, and again, after AfterCreateSession, where a task died in it.
class SessionHook {
 public:
  virtual ~SessionHook() = default;
  /// The graph may be added to for the last time: it is being built on this thread.
  virtual Status Begin() { return OkStatus(); }
  /// The variables have their values. `global_step` is -1 when there is none.
  virtual Status AfterCreateSession(const RunContext& context, int64_t global_step) {
    (void)context, (void)global_step;
    return OkStatus();
  }
  virtual Status BeforeRun(const RunContext& context, RunArguments* arguments) {
    (void)context, (void)arguments;
    return OkStatus();
  }
  virtual Status AfterRun(const RunContext& context, const RunValues& values) {
    (void)context, (void)values;
    return OkStatus();
  }
  virtual Status End(const RunContext& context) {
    (void)context;
    return OkStatus();
  }
  /// The session has been closed, after an error or in good order, and is about to go: threads of
  /// the hook that use it end now.
  virtual void SessionClosed() {}
};

}  // namespace tenon
