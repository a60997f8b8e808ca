// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "data/files/file.h"
#include "train/glm/predict/prediction_gaps.h"
#include "train/glm/result/glm_covariance.h"
#include "train/glm/result/glm_equation.h"

namespace tenon {

struct PredictTableOptions {
  enum class Type {
    kResponse,  // the mean
    kLink,      // the linear predictor
    kClass,  // of a binomial model: its second level, or 1, where the mean is `threshold` or more
  };
  Type type = Type::kResponse;
  double threshold = 0.5;
  /// Standard errors of the predictions, by the delta method those of means, as R's predict.glm()
  /// gives them. Empty: none; else the covariance of the estimates, without aliased ones.
  GlmCovariance covariance = {};
  std::vector<std::string> keep = {};  // columns of the table that come before the prediction
  int64_t max_rejects = 0;             // records that may be left out
  int64_t unit_bytes = int64_t{1} << 20;
};

/// The account of a table that was predicted.
struct PredictedTable {
  int64_t num_rows = 0;
  int64_t num_rejected = 0;  // records
  int64_t num_aliased = 0;   // coefficients, which count as 0
  int64_t num_files = 0;
  PredictionGaps gaps;

  /// "65,470 rows; 89 without prediction: 74 unseen levels of flight (first: 8, line 11,204)".
  std::string Text() const;
};

/// Predicts each row of the tables in `files` (FindTableFiles), whose columns are found by their
/// names. `write` gets a table in CSV: a header, then a line a row, in their order: the kept
/// columns as they stand in the files, `prediction`, and `se` where it is wanted. Rows without a
/// prediction have empty fields. Several units are read at once; memory holds a few of them.
/// InvalidArgument where a column is not there, or a number of the model is none, with file and
/// line.
StatusOr<PredictedTable> PredictTable(const GlmEquation& equation,
                                      const std::vector<std::string>& files,
                                      const PredictTableOptions& options,
                                      absl::FunctionRef<Status(std::string_view text)> write,
                                      const FileContext& context = {});

}  // namespace tenon
