// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "ops/glm/numeric_expression.h"

// Models as R writes them: `late ~ C(month) + carrier * origin + log(distance) + offset(x)`.

namespace tenon {

/// A variable of a term: a column, or the result of a function of columns.
struct FormulaVariable {
  enum class Kind {
    kColumn,    // numbers or categories, as the column's values are
    kCategory,  // C(column): categories, whatever the values
    kCut,       // cut(x, 1, 5): the interval that a number is in
    kHash,      // hash(column, n): one of n buckets
    kNumber,    // I(x^2), log(x): arithmetic
  };
  Kind kind = Kind::kColumn;
  std::string label;                     // as tables show it, and by which it is found again
  std::string column;                    // of kColumn, kCategory and kHash
  NumericExpression number;              // of kCut and kNumber
  std::vector<double> breaks;            // of kCut, increasing
  int64_t num_buckets = 0;               // of kHash
  std::optional<std::string> reference;  // C(column, ref=...): the level without a coefficient
  /// C(column, ref=frequent): it is the level with the most rows.
  bool frequent_reference = false;
};

/// A product of variables, by their indices in the formula, each once. None: the intercept.
struct FormulaTerm {
  std::vector<int64_t> variables;
  std::string label;  // "carrier:origin"
};

/// The left side, which the terms explain.
struct FormulaResponse {
  enum class Kind {
    kNumber,  // arithmetic; a column alone may have two categories too
    kEquals,  // column == "text": 1 or 0
    kCounts,  // cbind(successes, failures)
  };
  Kind kind = Kind::kNumber;
  std::string label;
  NumericExpression number;    // of kNumber; successes
  NumericExpression failures;  // of kCounts
  std::string column, text;    // of kEquals
};

/// A model in symbols (Wilkinson and Rogers 1973, as in R): terms in the order in which their
/// coefficients are, those of fewer variables first.
struct Formula {
  FormulaResponse response;
  bool has_intercept = true;
  std::vector<FormulaVariable> variables;
  std::vector<FormulaTerm> terms;  // without the intercept
  std::vector<NumericExpression> offsets;

  /// Every column that is needed, each once.
  std::vector<std::string> Columns() const;
};

/// Reads a formula about a table with these columns. `.` stands for those that are neither in the
/// response nor `reserved` (the weights' one). InvalidArgument names the place, from 1 on, what was
/// found there and what was wanted; for a column that is not there, the closest one.
StatusOr<Formula> ParseFormula(std::string_view text, const std::vector<std::string>& columns,
                               const std::vector<std::string>& reserved = {});

}  // namespace tenon
