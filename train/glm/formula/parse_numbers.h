// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/base/status.h"
#include "ops/glm/numeric_expression.h"
#include "train/glm/formula/formula_words.h"

namespace tenon {

/// Reads arithmetic: numbers, columns, + - * / ^ with R's precedence, parentheses and functions.
StatusOr<NumericExpression> ParseNumericExpression(FormulaWords* words);

/// Whether a function of that name gives numbers: log, log1p, sqrt, exp, abs, and I, which gives
/// what it is given.
bool IsNumericFunction(std::string_view name);
/// Reads the call of such a function, which comes next.
Status ParseNumericFunction(FormulaWords* words, NumericExpression* out);

}  // namespace tenon
