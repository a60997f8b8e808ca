// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "runtime/session/session.h"
#include "tools/run/feeds.h"
#include "tools/run/outputs.h"

namespace tenon::tools {

/// Options of RunSteps, by name.
struct RunLoopOptions {
  std::vector<std::string> fetches, labels, targets;
  /// How many, without batches.
  int64_t steps = 1;
  int64_t batch = 0;
  int64_t timeout_ms = 0;
  /// Null: nothing is written.
  OutputWriter* output = nullptr;
  /// What the output is called; "-" is the standard output.
  std::string output_name;
  /// The file of each row comes before the fetches in the output.
  bool file_names = false;
  /// File for a Chrome trace of the last step; empty: none.
  std::string trace;
  bool print_times = false;
  /// What to say of a step that failed; may be null.
  std::function<Status(const Status& status)> explain;
};

/// What the first step is fed with, some rows of it in batches; others may have needed it before.
struct FirstRows {
  std::vector<Tensor> values;
  int64_t rows = 0;
};

/// Runs the steps: prints what they fetch, or writes it and shows how far they are. The first
/// ctrl-C or SIGTERM ends them in good order: what the steps before gave is written. Returns the
/// exit code, having reported what went wrong.
int RunSteps(Session& session, const RunLoopOptions& options, FeedInputs& feeds, FirstRows first);

}  // namespace tenon::tools
