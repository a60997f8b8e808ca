// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "ops/glm/glm_sums.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/model/glm_penalty.h"
#include "train/glm/rows/stream_options.h"
#include "train/glm/rows/table_tasks.h"

namespace tenon {

/// The facts about the rows that a stream needs beside the model.
struct StreamRows {
  int64_t all = 0;   // of the table
  GlmTotals totals;  // of those that are used
  double start_intercept = 0;
};

/// Called after each epoch with its deviance, each row's before its step, and coefficients.
using StreamProgress =
    std::function<void(int64_t epoch, double deviance, const std::vector<double>& coefficients)>;

/// DataLoss that names the device of coefficients which is gone.
Status CoefficientsLost(const std::string& device, const Status& failure);

/// Fits a settled model. A task that dies is left out, and its rows of that epoch are missed: the
/// result says how many. `tasks` are then others, without that task. DataLoss when a device of
/// coefficients is gone.
StatusOr<StreamFit> FitByStream(const GlmModel& model, const GlmPenalty& penalty,
                                const StreamRows& rows, const StreamFitOptions& options,
                                const StreamProgress& progress, std::unique_ptr<TableTasks>* tasks);

}  // namespace tenon
