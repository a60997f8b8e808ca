// SPDX-License-Identifier: Apache-2.0
#include "train/glm/result/glm_equation.h"

#include <algorithm>

#include "core/base/strings.h"

namespace tenon {

StatusOr<FormulaColumns> GlmEquation::ColumnsIn(const TableHeader& header,
                                                bool with_response) const {
  Formula needed = formula;
  if (!with_response) needed.response = {};
  std::vector<std::string> names = needed.Columns(), lacking;
  if (with_response && !weights.empty()) names.push_back(weights);
  for (const std::string& name : names) {
    if (std::find(header.names.begin(), header.names.end(), name) == header.names.end()) {
      lacking.push_back(StrCat("'", name, "'"));
    }
  }
  if (lacking.size() > 1) {
    return InvalidArgument("the table in '", header.path, "' has no columns ", Join(lacking, ", "),
                           ", which the model needs");
  }
  return FormulaColumns::Of(needed, with_response ? weights : "", header);
}

std::vector<int32_t> GlmEquation::ColumnsOfTerm(int64_t term) const {
  std::vector<int64_t> strides;
  int64_t size = 1;
  const std::vector<int64_t> none;
  for (const int64_t v : term < 0 ? none : formula.terms[term].variables) {
    strides.push_back(variables[v].is_factor ? size : 0);
    if (variables[v].is_factor) size *= static_cast<int64_t>(variables[v].levels.size());
  }
  std::vector<int32_t> columns(size, -1);
  for (size_t j = 0; j < design_columns.size(); ++j) {
    if (design_columns[j].term != term) continue;
    int64_t place = 0;
    for (size_t i = 0; i < strides.size(); ++i) place += strides[i] * design_columns[j].levels[i];
    columns[place] = static_cast<int32_t>(j);
  }
  return columns;
}

std::vector<double> GlmEquation::CoefficientsOfTerm(int64_t term) const {
  std::vector<double> values;
  for (const int32_t column : ColumnsOfTerm(term)) {
    values.push_back(column < 0 ? 0 : coefficients[column]);
  }
  return values;
}

}  // namespace tenon
