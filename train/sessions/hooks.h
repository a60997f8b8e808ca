// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/build/building.h"
#include "data/records/event_file.h"
#include "train/saver/saver.h"
#include "train/sessions/session_hook.h"

// The hooks of TensorFlow 1 (tf.train.StopAtStepHook and the like), for MonitoredTrainingSession.

namespace tenon {

using NoticeFunction = std::function<void(const std::string& line)>;

/// When something is due that happens each so many steps, or each so much time
/// (tf.train.SecondOrStepTimer).
class Timer {
 public:
  /// By steps when `steps` is above 0, else by time.
  Timer(int64_t steps, std::chrono::milliseconds period) : steps_(steps), period_(period) {}
  /// Always before the first Triggered.
  bool IsDue(int64_t step, Clock::Time now) const;
  void Triggered(int64_t step, Clock::Time now);

 private:
  const int64_t steps_;
  const std::chrono::milliseconds period_;
  std::optional<int64_t> last_step_;
  Clock::Time last_time_;
};

/// Ends training when the step counter has reached `last_step`, whoever counts
/// (tf.train.StopAtStepHook). FailedPrecondition after 100 steps, all of this process, of which
/// none was counted.
std::shared_ptr<SessionHook> StopAtStep(int64_t last_step);
/// The same so many steps after the session's start (tf.train.StopAtStepHook with num_steps).
std::shared_ptr<SessionHook> StopAfterSteps(int64_t steps);

/// The saves that have failed since the last one that did not, for those that save at intervals.
class SaveFailures {
 public:
  using Milliseconds = std::chrono::milliseconds;
  /// `patience` is the least time over which saves must have failed to be too many, and
  /// `insistence` how long the last save is tried.
  explicit SaveFailures(NoticeFunction notice, Milliseconds patience = std::chrono::minutes(1),
                        Milliseconds insistence = std::chrono::seconds(30))
      : notice_(std::move(notice)), patience_(patience), insistence_(insistence) {}
  /// Counts the save of `step` and says what was wrong with it; its error when it is the fifth in a
  /// row or a later one and the first was so long ago, and OK otherwise.
  Status Count(const Status& saved, int64_t step, Clock::Time now);
  /// Calls `save`, with pauses of 2 s, until it succeeds, is recoverable from, or time is up.
  Status Insist(int64_t step, Clock& clock, const std::function<Status()>& save);

 private:
  void Tell(const Status& saved, int64_t step, std::string_view consequence) const;

  const NoticeFunction notice_;
  const Milliseconds patience_, insistence_;
  int in_a_row_ = 0;
  Clock::Time first_;  // of those in a row
};

/// Options of CheckpointSaverHook, by name.
struct CheckpointSaverOptions {
  std::string directory;
  /// Must outlive the hook.
  Saver* saver = nullptr;
  int64_t steps = 0;  // 0: by time
  std::chrono::milliseconds period{std::chrono::minutes(10)};
  std::string basename = "model.ckpt";
  NoticeFunction notice = {};
};
/// Saves at the start, unless what was restored is the latest checkpoint already, at intervals, and
/// at the end (tf.train.CheckpointSaverHook). A save at an interval that fails, on a full disk for
/// example, is said, and training goes on to the next one; five in a row, over a minute or more,
/// are the hook's error. The last save is tried for half a minute.
class CheckpointSaverHook final : public SessionHook {
 public:
  explicit CheckpointSaverHook(CheckpointSaverOptions options);
  Status AfterCreateSession(const RunContext& context, int64_t global_step) override;
  Status AfterRun(const RunContext& context, const RunValues& values) override;
  Status End(const RunContext& context) override;

 private:
  Status Save(const RunContext& context, int64_t step);
  /// A save that may fail, see above.
  Status SaveOrGoOn(const RunContext& context, int64_t step);

  /// Says so, once, when somebody else has saved into the directory since the last save.
  void LookForOthers();

  const CheckpointSaverOptions options_;
  Timer timer_;
  SaveFailures failures_;
  int64_t saved_ = -1;
  std::string last_;  // that this hook has saved
  bool recovered_ = false, others_are_told_ = false;
};

/// Options of SummarySaverHook, by name.
struct SummarySaverOptions {
  /// The directory of the event files.
  std::string directory;
  int64_t steps = 100;
  std::chrono::milliseconds period{0};  // when steps is 0
  /// A string scalar, as MergeSummary gives; without one, what is in the graph's collection
  /// "summaries".
  Output summary = {};
};
/// Writes summaries, the graph, and the rate of steps ("global_step/sec") for TensorBoard
/// (tf.train.SummarySaverHook).
class SummarySaverHook final : public SessionHook {
 public:
  explicit SummarySaverHook(SummarySaverOptions options);
  Status Begin() override;
  Status AfterCreateSession(const RunContext& context, int64_t global_step) override;
  Status BeforeRun(const RunContext& context, RunArguments* arguments) override;
  Status AfterRun(const RunContext& context, const RunValues& values) override;
  Status End(const RunContext& context) override;

 private:
  SummarySaverOptions options_;
  Timer timer_;
  std::unique_ptr<EventWriter> writer_;
  int64_t steps_seen_ = 0, rate_step_ = -1;
  Clock::Time rate_time_;
  bool asked_ = false;
};

/// Says the step counter and its rate each so many steps (tf.train.StepCounterHook).
class StepCounterHook final : public SessionHook {
 public:
  StepCounterHook(int64_t steps, NoticeFunction notice);
  Status Begin() override;
  Status AfterRun(const RunContext& context, const RunValues& values) override;

 private:
  const int64_t steps_;
  const NoticeFunction notice_;
  int64_t last_step_ = -1;
  Clock::Time last_time_;
};

/// What NanTensorHook does when it finds one.
enum class OnNan { kFail, kStop };
/// Ends training when `loss`, a float or double tensor, has an element that is not finite: with
/// InvalidArgument naming it, or in good order (tf.train.NanTensorHook).
std::shared_ptr<SessionHook> NanTensorHook(const Output& loss, OnNan action = OnNan::kFail);

/// Says the values of tensors each so many steps, by the names given, like "loss = 0.25, accuracy =
/// 0.9 (step 100)" (tf.train.LoggingTensorHook).
std::shared_ptr<SessionHook> LoggingTensorHook(
    const std::vector<std::pair<std::string, Output>>& tensors, int64_t every_n_steps,
    NoticeFunction notice);

/// Writes what every node did in one step, each so many steps, to <directory>/timeline-<step>.json,
/// for chrome://tracing (tf.train.ProfilerHook).
std::shared_ptr<SessionHook> ProfilerHook(const std::string& directory, int64_t every_n_steps);

}  // namespace tenon
