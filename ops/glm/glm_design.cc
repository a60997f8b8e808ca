// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/glm_design.h"

#include <algorithm>
#include <cmath>

#include "core/base/strings.h"

namespace tenon {
namespace {

// Columns are numbered by int32 codes.
constexpr int64_t kMaxColumns = int64_t{1} << 30;

Status CheckIndex(const char* what, int64_t index, int64_t size) {
  if (index >= 0 && index < size) return OkStatus();
  return InvalidArgument("a design has no ", what, " ", index, ", only ", size);
}

/// The stack of an expression may not run empty, nor be left with more than its value.
Status CheckNumber(const GlmNumber& number, int64_t num_table_columns) {
  using Op = NumericExpression::Op;
  const NumericExpression& expression = number.expression;
  for (const int64_t c : number.columns) {
    TENON_RETURN_IF_ERROR(CheckIndex("column", c, num_table_columns));
  }
  int64_t depth = 0;
  for (const NumericExpression::Step& step : expression.steps) {
    const bool pushes = step.op == Op::kColumn || step.op == Op::kNumber;
    const bool joins = step.op >= Op::kAdd && step.op <= Op::kPower;
    if (step.op == Op::kColumn) {
      TENON_RETURN_IF_ERROR(CheckIndex("operand", step.index, number.columns.size()));
    }
    if (!pushes && depth < (joins ? 2 : 1)) return InvalidArgument("a number lacks an operand");
    depth += pushes ? 1 : joins ? -1 : 0;
  }
  if (depth != 1) return InvalidArgument("a number leaves ", depth, " values, wanted 1");
  return OkStatus();
}

Status CheckFactor(const GlmFactor& factor, int64_t num_table_columns) {
  if (factor.num_levels < 0 || factor.num_levels > kMaxColumns) {
    return InvalidArgument("a factor has ", factor.num_levels, " levels");
  }
  for (const int32_t level : factor.level_of_code) {
    if (level < -1 || level >= factor.num_levels) {
      return InvalidArgument("a factor has no level ", level, ", only ", factor.num_levels);
    }
  }
  if (factor.column >= 0) return CheckIndex("column", factor.column, num_table_columns);
  const int64_t intervals = factor.level_of_code.empty()
                                ? factor.num_levels
                                : static_cast<int64_t>(factor.level_of_code.size());
  if (!std::is_sorted(factor.breaks.begin(), factor.breaks.end()) ||
      static_cast<int64_t>(factor.breaks.size()) != intervals + 1) {
    return InvalidArgument("a factor of ", intervals, " intervals wants ", intervals + 1,
                           " breaks in order, found ", factor.breaks.size());
  }
  return CheckNumber(factor.number, num_table_columns);
}

}  // namespace

int64_t GlmDesign::NumColumns(const GlmGroup& group) const {
  int64_t columns = 1;
  for (const int64_t f : group.factors) columns *= factors[f].num_levels;
  return columns;
}

int64_t GlmDesign::num_columns() const {
  int64_t columns = 0;
  for (const GlmGroup& group : groups) columns += NumColumns(group);
  return columns;
}

Status GlmDesign::Check(int64_t num_table_columns) const {
  TENON_RETURN_IF_ERROR(CheckLink(family, link));
  if (response.column >= 0) {
    TENON_RETURN_IF_ERROR(CheckIndex("column", response.column, num_table_columns));
  } else {
    TENON_RETURN_IF_ERROR(CheckNumber(response.number, num_table_columns));
    if (!response.failures.expression.steps.empty()) {
      TENON_RETURN_IF_ERROR(CheckNumber(response.failures, num_table_columns));
    }
  }
  if (weight_column != -1) {
    TENON_RETURN_IF_ERROR(CheckIndex("column", weight_column, num_table_columns));
  }
  for (const GlmNumber& n : offsets) TENON_RETURN_IF_ERROR(CheckNumber(n, num_table_columns));
  for (const GlmNumber& n : numbers) TENON_RETURN_IF_ERROR(CheckNumber(n, num_table_columns));
  for (const GlmFactor& f : factors) TENON_RETURN_IF_ERROR(CheckFactor(f, num_table_columns));
  if (groups.empty() || groups[0].number >= 0 || !groups[0].factors.empty()) {
    return InvalidArgument("the first group of a design must be the intercept");
  }
  int64_t left = kMaxColumns;
  for (const GlmGroup& group : groups) {
    if (group.number != -1) {
      TENON_RETURN_IF_ERROR(CheckIndex("number", group.number, numbers.size()));
    }
    int64_t columns = 1;
    for (const int64_t f : group.factors) {
      TENON_RETURN_IF_ERROR(CheckIndex("factor", f, factors.size()));
      if (factors[f].num_levels > left / columns) {
        return InvalidArgument("a design has more than ", kMaxColumns, " columns");
      }
      columns *= factors[f].num_levels;
    }
    if ((left -= columns) < 0) {
      return InvalidArgument("a design has more than ", kMaxColumns, " columns");
    }
  }
  return OkStatus();
}

}  // namespace tenon
