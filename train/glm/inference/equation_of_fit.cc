// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/equation_of_fit.h"

#include <utility>

namespace tenon {

void SettleFormula(const std::vector<DesignVariable>& variables,
                   const std::vector<std::string>& response_levels, Formula* formula) {
  for (size_t v = 0; v < variables.size(); ++v) {
    FormulaVariable& variable = formula->variables[v];
    if (variable.kind != FormulaVariable::Kind::kColumn || !variables[v].is_factor) continue;
    variable.kind = FormulaVariable::Kind::kCategory;
  }
  FormulaResponse& response = formula->response;
  if (response_levels.empty() || response.kind == FormulaResponse::Kind::kEquals) return;
  response.kind = FormulaResponse::Kind::kEquals;
  response.column = response.number.columns[0];
  response.text = response_levels[1];
  response.number = {};
}

GlmEquation EquationOf(const FittedGlm& fitted, std::string_view text, const std::string& weights,
                       const TableSchema& schema, const FormulaColumns& columns,
                       const ColumnKinds& kinds) {
  const GlmModel& model = *fitted.model;
  GlmEquation equation;
  equation.text = text;
  equation.columns = schema.header.names;
  equation.weights = weights;
  equation.family = model.design().family;
  equation.link = model.design().link;
  equation.format = schema.format;
  equation.formula = fitted.formula;
  const FormulaResponse& response = fitted.formula.response;
  if (response.kind == FormulaResponse::Kind::kNumber && model.design().response.column >= 0) {
    const int64_t column = columns.AsItIs(response.number.columns[0]);
    equation.response_levels = kinds.levels.at(column).texts;
  }
  equation.variables = model.variables();
  SettleFormula(equation.variables, equation.response_levels, &equation.formula);
  equation.separated.resize(equation.variables.size());
  for (const SeparatedLevel& level : fitted.separated) {
    if (!level.is_kept) equation.separated[level.variable].push_back(level.level);
  }
  equation.design_columns = model.columns();
  const Eigen::VectorXd estimates = model.ToUnits(fitted.fit.coefficients);
  equation.coefficients.assign(estimates.data(), estimates.data() + estimates.size());
  equation.is_aliased.resize(equation.coefficients.size());
  for (const int64_t j : fitted.fit.aliased) {
    equation.coefficients[j] = 0;
    equation.is_aliased[j] = true;
  }
  return equation;
}

}  // namespace tenon
