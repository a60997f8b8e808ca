// SPDX-License-Identifier: Apache-2.0
#include "train/glm/result/equation_design.h"

#include <algorithm>
#include <utility>

#include "core/base/strings.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/result/level_finder.h"

namespace tenon {
namespace {

/// No text of a table has this code.
constexpr int32_t kNeverCode = -2;

/// Makes a design part by part.
class DesignMaker {
 public:
  DesignMaker(const GlmEquation& equation, const FormulaColumns& columns, const ColumnKinds& kinds)
      : equation_(equation), formula_(equation.formula), columns_(columns), kinds_(kinds) {}

  StatusOr<EquationDesign> Make() {
    design_.family = equation_.family;
    design_.link = equation_.link;
    TENON_RETURN_IF_ERROR(SetResponse());
    for (size_t v = 0; v < formula_.variables.size(); ++v) TENON_RETURN_IF_ERROR(AddVariable(v));
    for (const NumericExpression& offset : formula_.offsets) {
      TENON_ASSIGN_OR_RETURN(GlmNumber number, NumberOf(offset));
      design_.offsets.push_back(std::move(number));
    }
    if (!equation_.weights.empty()) {
      TENON_ASSIGN_OR_RETURN(design_.weight_column, ColumnOfNumbers(equation_.weights));
    }
    design_.groups.push_back({});
    made_.coefficients = equation_.CoefficientsOfTerm(-1);
    for (size_t t = 0; t < formula_.terms.size(); ++t) AddTerm(static_cast<int64_t>(t));
    return std::move(made_);
  }

 private:
  StatusOr<int64_t> ColumnOfNumbers(const std::string& name) const {
    const int64_t column = columns_.AsItIs(name);
    if (!kinds_.is_text[column]) return column;
    return InvalidArgument("column '", name, "' has texts such as '",
                           kinds_.levels.at(column).texts.front(), "', the model wants numbers");
  }

  StatusOr<GlmNumber> NumberOf(const NumericExpression& expression) const {
    GlmNumber number = {expression, {}};
    for (const std::string& name : expression.columns) {
      TENON_ASSIGN_OR_RETURN(const int64_t column, ColumnOfNumbers(name));
      number.columns.push_back(column);
    }
    return number;
  }

  Status SetResponse() {
    const FormulaResponse& from = formula_.response;
    GlmResponse& to = design_.response;
    if (from.kind != FormulaResponse::Kind::kEquals) {
      TENON_ASSIGN_OR_RETURN(to.number, NumberOf(from.number));
      if (from.kind != FormulaResponse::Kind::kCounts) return OkStatus();
      TENON_ASSIGN_OR_RETURN(to.failures, NumberOf(from.failures));
      return OkStatus();
    }
    to.column = columns_.AsText(from.column);
    to.code = kNeverCode;
    const std::vector<std::string>& texts = kinds_.levels.at(to.column).texts;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (texts[i] == from.text) to.code = static_cast<int32_t>(i);
      const auto& known = equation_.response_levels;
      if (known.empty() || std::find(known.begin(), known.end(), texts[i]) != known.end()) continue;
      return InvalidArgument("the response '", from.column, "' is '", texts[i],
                             "', the model knows '", known[0], "' and '", known[1], "'");
    }
    return OkStatus();
  }

  Status AddVariable(size_t v) {
    const FormulaVariable& variable = formula_.variables[v];
    factors_.push_back(-1);
    numbers_.emplace_back();
    if (!equation_.variables[v].is_factor) {
      const bool is_column = variable.kind == FormulaVariable::Kind::kColumn;
      const NumericExpression alone = {{{NumericExpression::Op::kColumn}}, {variable.column}};
      TENON_ASSIGN_OR_RETURN(numbers_.back(), NumberOf(is_column ? alone : variable.number));
      return OkStatus();
    }
    const LevelFinder finder(equation_, static_cast<int64_t>(v));
    GlmFactor factor;
    factor.num_levels = static_cast<int64_t>(equation_.variables[v].levels.size());
    if (variable.kind == FormulaVariable::Kind::kCut) {
      TENON_ASSIGN_OR_RETURN(factor.number, NumberOf(variable.number));
      factor.breaks = variable.breaks;
      for (size_t i = 0; i + 1 < variable.breaks.size(); ++i) {
        factor.level_of_code.push_back(std::max(finder.OfInterval(i), -1));
      }
    } else {
      factor.column = columns_.AsText(variable.column);
      for (const std::string& text : kinds_.levels.at(factor.column).texts) {
        factor.level_of_code.push_back(std::max(finder.Of(text), -1));
      }
      // Without any level the factor must not be taken for one whose codes are its levels.
      if (factor.level_of_code.empty()) factor.level_of_code.push_back(-1);
    }
    factors_.back() = static_cast<int64_t>(design_.factors.size());
    design_.factors.push_back(std::move(factor));
    return OkStatus();
  }

  void AddTerm(int64_t t) {
    GlmGroup group;
    std::vector<int64_t> numbers;
    for (const int64_t v : formula_.terms[t].variables) {
      if (factors_[v] < 0) {
        numbers.push_back(v);
      } else {
        group.factors.push_back(factors_[v]);
      }
    }
    if (!numbers.empty()) {
      group.number = static_cast<int64_t>(design_.numbers.size());
      design_.numbers.push_back(ProductOf(numbers_, numbers));
    }
    design_.groups.push_back(std::move(group));
    const std::vector<double> own = equation_.CoefficientsOfTerm(t);
    made_.coefficients.insert(made_.coefficients.end(), own.begin(), own.end());
  }

  const GlmEquation& equation_;
  const Formula& formula_;
  const FormulaColumns& columns_;
  const ColumnKinds& kinds_;
  EquationDesign made_;
  GlmDesign& design_ = made_.design;
  std::vector<int64_t> factors_;    // by variable: its place in the design, or -1
  std::vector<GlmNumber> numbers_;  // by variable
};

}  // namespace

StatusOr<EquationDesign> DesignOver(const GlmEquation& equation, const FormulaColumns& columns,
                                    const ColumnKinds& kinds) {
  return DesignMaker(equation, columns, kinds).Make();
}

}  // namespace tenon
