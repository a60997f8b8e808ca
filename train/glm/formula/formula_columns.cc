// SPDX-License-Identifier: Apache-2.0
#include "train/glm/formula/formula_columns.h"

namespace tenon {

StatusOr<FormulaColumns> FormulaColumns::Of(const Formula& formula, const std::string& weights,
                                            const TableHeader& header) {
  FormulaColumns all;
  const auto add_numbers = [&](const NumericExpression& expression) -> Status {
    for (const std::string& name : expression.columns) {
      TENON_RETURN_IF_ERROR(all.Add(name, false, header));
    }
    return OkStatus();
  };
  const FormulaResponse& response = formula.response;
  TENON_RETURN_IF_ERROR(add_numbers(response.number));
  TENON_RETURN_IF_ERROR(add_numbers(response.failures));
  if (response.kind == FormulaResponse::Kind::kEquals) {
    TENON_RETURN_IF_ERROR(all.Add(response.column, true, header));
  }
  for (const FormulaVariable& variable : formula.variables) {
    TENON_RETURN_IF_ERROR(add_numbers(variable.number));
    const bool as_text = variable.kind == FormulaVariable::Kind::kCategory ||
                         variable.kind == FormulaVariable::Kind::kHash;
    if (variable.column.empty()) continue;
    TENON_RETURN_IF_ERROR(all.Add(variable.column, as_text, header));
  }
  for (const NumericExpression& offset : formula.offsets) {
    TENON_RETURN_IF_ERROR(add_numbers(offset));
  }
  if (!weights.empty()) TENON_RETURN_IF_ERROR(all.Add(weights, false, header));
  return all;
}

Status FormulaColumns::Add(const std::string& name, bool as_text, const TableHeader& header) {
  auto& places = as_text ? as_text_ : as_it_is_;
  if (places.contains(name)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const int64_t place, FindColumn(header, name));
  places[name] = static_cast<int64_t>(columns_.size());
  columns_.push_back({place, as_text});
  names_.push_back(name);
  return OkStatus();
}

}  // namespace tenon
