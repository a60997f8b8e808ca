// SPDX-License-Identifier: Apache-2.0
#include "train/glm/formula/design_columns.h"

#include <algorithm>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// Whether all variables of `part`, but for `without`, are in `whole`. Both are sorted.
bool HasRest(const FormulaTerm& whole, const FormulaTerm& part, int64_t without) {
  return std::all_of(part.variables.begin(), part.variables.end(), [&](int64_t v) {
    return v == without || std::binary_search(whole.variables.begin(), whole.variables.end(), v);
  });
}

/// Whether the variable is a factor that has a column for each level in the term.
class LevelRule {
 public:
  LevelRule(const Formula& formula, const std::vector<DesignVariable>& variables)
      : formula_(formula) {
    if (formula.has_intercept) return;
    for (const FormulaTerm& term : formula.terms) {
      const auto factor = std::find_if(term.variables.begin(), term.variables.end(),
                                       [&](int64_t v) { return variables[v].is_factor; });
      if (factor == term.variables.end()) continue;
      first_term_ = &term;
      first_factor_ = *factor;
      return;
    }
  }

  bool HasAllLevels(size_t term, int64_t variable) const {
    const FormulaTerm& here = formula_.terms[term];
    if (&here == first_term_ && variable == first_factor_) return true;
    if (here.variables.size() == 1) return false;
    return std::none_of(formula_.terms.begin(), formula_.terms.begin() + term,
                        [&](const FormulaTerm& t) { return HasRest(t, here, variable); });
  }

 private:
  const Formula& formula_;
  const FormulaTerm* first_term_ = nullptr;
  int64_t first_factor_ = -1;
};

}  // namespace

std::vector<DesignColumn> ListDesignColumns(const Formula& formula,
                                            const std::vector<DesignVariable>& variables) {
  const LevelRule rule(formula, variables);
  std::vector<DesignColumn> columns;
  if (formula.has_intercept) columns.push_back({-1, {}});
  for (size_t t = 0; t < formula.terms.size(); ++t) {
    // The levels of the last variable change slowest.
    std::vector<DesignColumn> own = {{static_cast<int64_t>(t), {}}};
    const std::vector<int64_t>& of_term = formula.terms[t].variables;
    for (auto v = of_term.rbegin(); v != of_term.rend(); ++v) {
      const DesignVariable& variable = variables[*v];
      const bool all = variable.is_factor && rule.HasAllLevels(t, *v);
      std::vector<int64_t> levels;
      if (!variable.is_factor) levels.push_back(-1);
      for (size_t l = 0; l < variable.levels.size() && variable.is_factor; ++l) {
        const auto level = static_cast<int64_t>(l);
        if (all || level != variable.reference) levels.push_back(level);
      }
      std::vector<DesignColumn> more;
      for (const DesignColumn& column : own) {
        for (const int64_t level : levels) {
          more.push_back(column);
          more.back().levels.insert(more.back().levels.begin(), level);
        }
      }
      own = std::move(more);
    }
    columns.insert(columns.end(), own.begin(), own.end());
  }
  return columns;
}

ColumnRange LargestFactor(const std::vector<DesignColumn>& columns) {
  ColumnRange largest, own;
  for (size_t j = 0; j < columns.size(); ++j) {
    const bool is_level = columns[j].levels.size() == 1 && columns[j].levels[0] >= 0;
    if (j == 0 || columns[j].term != columns[j - 1].term) own = {static_cast<int64_t>(j), 0};
    if (is_level && ++own.count > largest.count) largest = own;
  }
  return largest;
}

std::string NameOfColumn(const Formula& formula, const std::vector<DesignVariable>& variables,
                         const DesignColumn& column) {
  if (column.term < 0) return "(Intercept)";
  const FormulaTerm& term = formula.terms[column.term];
  std::string name;
  for (size_t i = 0; i < term.variables.size(); ++i) {
    const int64_t v = term.variables[i];
    StrAppend(&name, i == 0 ? "" : ":", formula.variables[v].label,
              column.levels[i] < 0 ? "" : variables[v].levels[column.levels[i]]);
  }
  return name;
}

}  // namespace tenon
