// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "ops/glm/glm_family.h"
#include "ops/glm/numeric_expression.h"

// The design of a linear model as the passes over a table want it. Every level of a factor has a
// column, the reference too: which of them have a coefficient is decided afterwards.

namespace tenon {

/// A number of each row: `(expression - center) * scale`.
struct GlmNumber {
  NumericExpression expression;
  std::vector<int64_t> columns;  // of the table, for those of the expression
  double center = 0, scale = 1;
};

/// A factor of each row: the code of a column of texts, or the interval that a number is in.
struct GlmFactor {
  int64_t column = -1;  // -1: `number` and `breaks` say it
  /// The level of each code or interval; -1 leaves its rows out. Empty: they are the levels.
  std::vector<int32_t> level_of_code;
  GlmNumber number;
  /// Interval i is above breaks[i] and at most breaks[i + 1], as with R's cut(). Numbers outside
  /// are missing.
  std::vector<double> breaks;
  int64_t num_levels = 0;
};

/// The columns of a product of a number and the indicators of factors' levels, the level of the
/// first one changing fastest.
struct GlmGroup {
  int64_t number = -1;  // in the design; -1: 1
  std::vector<int64_t> factors;
};

/// The response: a number; with failures, the share of successes among both; or whether a factor
/// has a level.
struct GlmResponse {
  GlmNumber number;     // successes, with failures
  GlmNumber failures;   // none where its expression has no steps
  int64_t column = -1;  // a column of texts, instead of numbers
  int32_t code = 0;     // that is 1; others are 0
};

/// A linear model's rows and columns. The first group is the intercept, without number and factors,
/// whether it has a coefficient or not.
struct GlmDesign {
  GlmFamily family = GlmFamily::kGaussian;
  GlmLink link = GlmLink::kIdentity;
  GlmResponse response;
  std::vector<GlmNumber> offsets;
  int64_t weight_column = -1;  // of numbers; -1: 1
  std::vector<GlmNumber> numbers;
  std::vector<GlmFactor> factors;
  std::vector<GlmGroup> groups;

  /// The columns of a group.
  int64_t NumColumns(const GlmGroup& group) const;
  int64_t num_columns() const;
  /// InvalidArgument where an index is none or numbers are too many: a design comes from outside.
  Status Check(int64_t num_table_columns) const;
};

}  // namespace tenon
