// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "runtime/device/machine_clock.h"
#include "runtime/session/session.h"

namespace tenon {

class Saver;

/// What metrics are worth at a checkpoint, by their names.
using MetricValues = std::map<std::string, double>;

/// A checkpoint that has been evaluated.
struct Evaluation {
  int64_t step = 0;
  std::string checkpoint;  // its prefix
  MetricValues metrics;
};

/// Where evaluated models go: see model_export.h.
class ModelExporter {
 public:
  virtual ~ModelExporter() = default;
  /// `session` has the values of the checkpoint.
  virtual Status Export(Session& session, const Evaluation& evaluation) = 0;
};

/// Options of EvaluateCheckpoints, by name.
struct EvaluationOptions {
  /// Where the training saves.
  std::string checkpoint_dir;
  /// Event files with the metrics, for TensorBoard; empty: "eval" in checkpoint_dir.
  std::string eval_dir = {};
  /// At the least so long from the beginning of an evaluation to that of the next one
  /// (tf.estimator's throttle_secs). Of the checkpoints of that time the last one counts.
  std::chrono::milliseconds throttle{0};
  /// How often the folder is looked at.
  std::chrono::milliseconds pause{1000};
  /// Whether training goes on; once it says no, the last checkpoint is evaluated, and that is the
  /// end. Null: the latest checkpoint is evaluated, and no other.
  std::function<StatusOr<bool>()> training_goes_on = {};
  /// The end comes after a checkpoint of so many steps in any case; 0: no such step is known.
  int64_t last_step = 0;
  std::vector<std::shared_ptr<ModelExporter>> exporters = {};
  /// Restores; null: one of all variables. Must outlive the call.
  Saver* saver = nullptr;
  /// Gets a line for each evaluation, and where something is passed over; may be null.
  std::function<void(const std::string& line)> notice = {};
  Clock* clock = &MachineClock();
  std::source_location location = std::source_location::current();
};

/// Evaluates the checkpoints of a training that goes on elsewhere (the evaluator of
/// tf.estimator.train_and_evaluate), in a session of this process on the graph that is being built:
/// restores each into the variables and calls `evaluate`, whose metrics become scalar summaries.
/// The step is the value of the graph's step counter, or else the number at the end of the
/// checkpoint's name. Ctrl-C and SIGTERM end it after the present evaluation.
///
///   const auto accuracy = [&](Session& session) -> StatusOr<MetricValues> {
///     TENON_ASSIGN_OR_RETURN(const float value, session.Run<float>({{x, images}}, accuracy));
///     return MetricValues{{"accuracy", value}};
///   };
///   TENON_ASSIGN_OR_RETURN(const auto evaluations,
///                          EvaluateCheckpoints({.checkpoint_dir = "/data/run"}, accuracy));
///
/// Gives all evaluations. NotFound when there was no checkpoint; the errors of `evaluate`, of
/// exporters and of Saver::Restore, but for a checkpoint that was deleted for a newer one.
StatusOr<std::vector<Evaluation>> EvaluateCheckpoints(
    const EvaluationOptions& options,
    const std::function<StatusOr<MetricValues>(Session& session)>& evaluate);

/// The folder of event files that the options mean.
std::string EvalDir(const EvaluationOptions& options);

}  // namespace tenon
