// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "train/evaluation/metric_history.h"
#include "train/sessions/session_hook.h"

namespace tenon {

/// Options of StopWithoutProgress, by name.
struct StopWithoutProgressOptions {
  /// The event files of the evaluations, which every worker sees: <checkpoint_dir>/eval.
  std::string eval_dir;
  /// The metric, and which values of it are better.
  std::string metric = "loss";
  Better better = Better::kSmaller;
  /// So many steps from the best evaluation to the last one are too many.
  int64_t max_steps_without_progress = 0;
  /// Before this step nothing ends.
  int64_t min_steps = 0;
  /// How often the files are looked at.
  std::chrono::milliseconds period{std::chrono::minutes(1)};
  /// Gets a line with the reason; may be null.
  std::function<void(const std::string& line)> notice = {};
};

/// Ends training when the evaluations have got no better for so many steps
/// (tf.estimator.experimental.stop_if_no_decrease_hook, and stop_if_no_increase_hook). A hook of
/// every worker. InvalidArgument, at the start, for a folder without a name or less than one step.
std::shared_ptr<SessionHook> StopWithoutProgress(const StopWithoutProgressOptions& options);

}  // namespace tenon
