// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/base/status.h"
#include "ops/glm/glm_design.h"
#include "train/glm/result/glm_equation.h"

namespace tenon {

/// The design of the equation over a table whose columns have these kinds and levels, with the
/// coefficients of its columns. Levels that the equation does not know are left out.
/// InvalidArgument, naming the column, where a number was expected, and where the response has
/// another level.
struct EquationDesign {
  GlmDesign design;
  std::vector<double> coefficients;
};
StatusOr<EquationDesign> DesignOver(const GlmEquation& equation, const FormulaColumns& columns,
                                    const ColumnKinds& kinds);

}  // namespace tenon
