// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "train/glm/result/glm_equation.h"
#include "train/glm/result/glm_result.h"
#include "train/glm/rows/table_tasks.h"

namespace tenon {

struct EvaluateGlmOptions {
  int64_t max_rejects = 0;  // records that may be left out
  /// The size of a part that is read by itself; 0: by the size of the whole.
  int64_t unit_bytes = 0;
  int64_t memory = 0;  // as for a fit
  std::vector<std::string> devices = {""};
  TableTasks::SessionMaker make_session = nullptr;  // in this process
};

/// How well a model predicts the responses of the tables in `files`, which have the columns of the
/// model in any order, and others. Rows with values missing, or with levels that the model does not
/// know, have no prediction, and are counted. The errors name the file and line of a bad value.
struct GlmEvaluation {
  GlmMetrics metrics;
  std::string gaps;  // why rows have no prediction: "74 unseen levels of flight (first: 8)"
};
StatusOr<GlmEvaluation> EvaluateGlm(const GlmEquation& equation,
                                    const std::vector<std::string>& files,
                                    const EvaluateGlmOptions& options = {});

/// The metrics in the scores of a pass (AddGlmScores).
GlmMetrics MetricsOf(GlmFamily family, absl::Span<const double> scores);

}  // namespace tenon
