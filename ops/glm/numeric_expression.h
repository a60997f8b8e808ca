// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace tenon {

/// Arithmetic on the numbers of a row, in double precision: the steps of a machine with a stack.
struct NumericExpression {
  enum class Op : uint8_t {
    kColumn,  // pushes columns[index]
    kNumber,  // pushes `number`
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kPower,
    kNegate,
    kLog,
    kLog1p,
    kSqrt,
    kExp,
    kAbs,
  };
  struct Step {
    Op op;
    int64_t index = 0;
    double number = 0;
  };

  std::vector<Step> steps;
  std::vector<std::string> columns;  // each once

  /// The value in each of `count` rows, of which `values[i]` has those of columns[i]. The values
  /// outside of what a function is defined for are NaN, or infinite, as C's are.
  void Evaluate(absl::Span<const double* const> values, int64_t count, double* out) const;
};

}  // namespace tenon
