// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "data/table/unit_reader.h"
#include "train/glm/inference/describe_fit.h"
#include "train/glm/result/glm_equation.h"

namespace tenon {

/// The equation of a fit of `text`, whose model is settled, over a table.
GlmEquation EquationOf(const FittedGlm& fitted, std::string_view text, const std::string& weights,
                       const TableSchema& schema, const FormulaColumns& columns,
                       const ColumnKinds& kinds);

/// Makes the formula say what the data have decided: variables that are factors are categories, and
/// a response of two texts is whether it has the second one.
void SettleFormula(const std::vector<DesignVariable>& variables,
                   const std::vector<std::string>& response_levels, Formula* formula);

}  // namespace tenon
