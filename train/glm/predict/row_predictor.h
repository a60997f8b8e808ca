// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "data/table/table_part.h"
#include "train/glm/predict/prediction_gaps.h"
#include "train/glm/result/glm_covariance.h"
#include "train/glm/result/glm_equation.h"
#include "train/glm/result/level_finder.h"

namespace tenon {

/// The linear predictors of rows.
struct PredictedRows {
  std::vector<double> predictor;        // NaN where there is none
  std::vector<double> standard_errors;  // of the predictors, where they were wanted
  struct Gap {
    int64_t row;
    PredictionGaps::Kind kind;
    int64_t column;  // in the columns; of a number of several, -1
    std::string name;
    std::string text;  // of a level
  };
  std::vector<Gap> gaps;  // by row; a row may have several
};

/// An equation over the columns of a table. Any thread.
class RowPredictor {
 public:
  /// `covariance` is that of the estimates, without aliased ones, for standard errors, or empty.
  /// `equation` must outlive this. InvalidArgument names the columns that the header lacks.
  static StatusOr<RowPredictor> Create(const GlmEquation& equation, const TableHeader& header,
                                       GlmCovariance covariance = {});

  const GlmEquation& equation() const { return equation_; }
  /// The columns to read, and what they are called.
  const std::vector<WantedColumn>& wanted() const { return wanted_; }
  const std::string& NameOf(int64_t column) const { return columns_.NameOf(column); }

  /// What is known of the codes of the texts in parts that keep them (ReadTablePart).
  struct KnownCodes {
    std::vector<std::vector<int32_t>> levels;  // by variable, by code
  };
  /// Predicts the rows of a part. REQUIRES: its columns are numbers where numbers are wanted.
  void Predict(const TablePart& part, KnownCodes* known, PredictedRows* rows) const;

 private:
  class PartPredictor;
  struct Term {
    std::vector<int64_t> numbers, factors;  // variables
    std::vector<int32_t> columns;           // of the equation, by combination of levels
    std::vector<double> coefficients;
  };

  RowPredictor(const GlmEquation& equation, FormulaColumns columns, GlmCovariance covariance);

  const GlmEquation& equation_;
  FormulaColumns columns_;
  std::vector<WantedColumn> wanted_;
  std::vector<Term> terms_;                                  // the intercept first
  std::vector<std::unique_ptr<const LevelFinder>> finders_;  // by variable
  GlmCovariance covariance_;
  std::vector<int32_t> estimated_;  // by column of the equation: its place in the covariance, or -1
};

}  // namespace tenon
