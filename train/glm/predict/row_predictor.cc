// SPDX-License-Identifier: Apache-2.0
#include "train/glm/predict/row_predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "train/glm/model/glm_model.h"

namespace tenon {

using Kind = PredictionGaps::Kind;

/// The work on one part.
class RowPredictor::PartPredictor {
 public:
  PartPredictor(const RowPredictor& predictor, const TablePart& part, KnownCodes* known,
                PredictedRows* rows)
      : p_(predictor), equation_(predictor.equation_), part_(part), known_(*known), rows_(*rows) {}

  void Predict() {
    const auto n = static_cast<size_t>(part_.num_rows);
    rows_.gaps.clear();
    rows_.standard_errors.clear();
    rows_.predictor.assign(n, 0);
    FindMissing();
    const size_t num_variables = equation_.formula.variables.size();
    known_.levels.resize(num_variables);
    numbers_.resize(num_variables);
    levels_.resize(num_variables);
    for (size_t v = 0; v < num_variables; ++v) ReadVariable(v);
    std::vector<double> offset(n);
    for (const NumericExpression& expression : equation_.formula.offsets) {
      Evaluate(expression, "offset", offset.data());
      for (size_t i = 0; i < n; ++i) rows_.predictor[i] += offset[i];
    }
    const bool with_errors = !p_.covariance_.empty();
    places_.resize(p_.terms_.size());
    products_.resize(p_.terms_.size());
    for (size_t t = 0; t < p_.terms_.size(); ++t) AddTerm(t);
    if (with_errors) FindErrors();
    std::sort(rows_.gaps.begin(), rows_.gaps.end(), [](const auto& a, const auto& b) {
      return std::tie(a.row, a.kind, a.name) < std::tie(b.row, b.kind, b.name);
    });
    for (const PredictedRows::Gap& gap : rows_.gaps) {
      rows_.predictor[gap.row] = std::numeric_limits<double>::quiet_NaN();
    }
  }

 private:
  void AddGap(int64_t row, Kind kind, int64_t column, const std::string& name,
              std::string_view text = "") {
    rows_.gaps.push_back({row, kind, column, name, std::string(text)});
  }

  void FindMissing() {
    for (int64_t c = 0; c < static_cast<int64_t>(p_.wanted_.size()); ++c) {
      const ColumnPart& column = part_.columns[c];
      // A column that is read both as numbers and as texts lacks the same values.
      const bool is_again = std::any_of(
          p_.wanted_.begin(), p_.wanted_.begin() + c,
          [&](const WantedColumn& before) { return before.place == p_.wanted_[c].place; });
      if (column.num_missing == 0 || is_again) continue;
      for (int64_t i = 0; i < part_.num_rows; ++i) {
        const bool missing = column.is_text ? column.codes[i] < 0 : std::isnan(column.numbers[i]);
        if (missing) AddGap(i, Kind::kMissing, c, p_.NameOf(c));
      }
    }
  }

  void Evaluate(const NumericExpression& expression, const std::string& label, double* out) {
    std::vector<const double*> values;
    std::vector<int64_t> columns;
    for (const std::string& name : expression.columns) {
      columns.push_back(p_.columns_.AsItIs(name));
      values.push_back(part_.columns[columns.back()].numbers.data());
    }
    expression.Evaluate(values, part_.num_rows, out);
    for (int64_t i = 0; i < part_.num_rows; ++i) {
      if (std::isfinite(out[i])) continue;
      out[i] = 0;
      const bool missing = std::any_of(values.begin(), values.end(),
                                       [&](const double* v) { return std::isnan(v[i]); });
      if (!missing) AddGap(i, Kind::kInfinite, columns.empty() ? -1 : columns[0], label);
    }
  }

  void ReadVariable(size_t v) {
    const FormulaVariable& variable = equation_.formula.variables[v];
    const auto n = static_cast<size_t>(part_.num_rows);
    if (!equation_.variables[v].is_factor) {
      numbers_[v].resize(n);
      const bool is_column = variable.kind == FormulaVariable::Kind::kColumn;
      const NumericExpression alone = {{{NumericExpression::Op::kColumn}}, {variable.column}};
      Evaluate(is_column ? alone : variable.number, variable.label, numbers_[v].data());
      return;
    }
    levels_[v].assign(n, 0);
    if (variable.kind == FormulaVariable::Kind::kCut) {
      ReadIntervals(variable, *p_.finders_[v], &levels_[v]);
    } else {
      ReadLevels(p_.columns_.AsText(variable.column), *p_.finders_[v], &known_.levels[v],
                 &levels_[v]);
    }
  }

  void ReadIntervals(const FormulaVariable& variable, const LevelFinder& finder,
                     std::vector<int32_t>* levels) {
    std::vector<double> numbers(levels->size());
    Evaluate(variable.number, variable.label, numbers.data());
    std::vector<int32_t> of_interval;
    for (size_t i = 0; i + 1 < variable.breaks.size(); ++i) {
      of_interval.push_back(finder.OfInterval(i));
    }
    const auto& breaks = variable.breaks;
    // Rows that lack a number, which is 0 then, have their gap already.
    std::vector<bool> has_gap(numbers.size());
    for (const PredictedRows::Gap& gap : rows_.gaps) has_gap[gap.row] = true;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      const auto above = std::lower_bound(breaks.begin(), breaks.end(), numbers[i]);
      const bool outside = above == breaks.begin() || above == breaks.end();
      const auto interval = static_cast<size_t>(above - breaks.begin()) - 1;
      const int32_t level = outside ? LevelFinder::kUnseen : of_interval[interval];
      (*levels)[i] = std::max(level, 0);
      if (level >= 0 || has_gap[i]) continue;
      const Kind kind = outside                            ? Kind::kOutside
                        : level == LevelFinder::kSeparated ? Kind::kSeparated
                                                           : Kind::kUnseen;
      AddGap(row, kind, -1, variable.label,
             outside ? "" : IntervalName(breaks[interval], breaks[interval + 1]));
    }
  }

  void ReadLevels(int64_t column, const LevelFinder& finder, std::vector<int32_t>* known,
                  std::vector<int32_t>* levels) {
    const ColumnPart& part = part_.columns[column];
    for (auto code = static_cast<int32_t>(known->size()); code < part.levels.size(); ++code) {
      known->push_back(finder.Of(part.levels.text(code)));
    }
    for (size_t i = 0; i < levels->size(); ++i) {
      const int32_t code = part.codes[i];
      if (code < 0) continue;
      const int32_t level = (*known)[code];
      (*levels)[i] = std::max(level, 0);
      if (level >= 0) continue;
      AddGap(static_cast<int64_t>(i),
             level == LevelFinder::kSeparated ? Kind::kSeparated : Kind::kUnseen, column,
             p_.NameOf(column), part.levels.text(code));
    }
  }

  void AddTerm(size_t t) {
    const Term& term = p_.terms_[t];
    const auto n = static_cast<size_t>(part_.num_rows);
    std::vector<int32_t>& places = places_[t];
    std::vector<double>& products = products_[t];
    places.assign(n, 0);
    products.assign(n, 1);
    int32_t stride = 1;
    for (const int64_t v : term.factors) {
      for (size_t i = 0; i < n; ++i) places[i] += stride * levels_[v][i];
      stride *= static_cast<int32_t>(equation_.variables[v].levels.size());
    }
    for (const int64_t v : term.numbers) {
      for (size_t i = 0; i < n; ++i) products[i] *= numbers_[v][i];
    }
    const double* const coefficients = term.coefficients.data();
    double* const out = rows_.predictor.data();
    for (size_t i = 0; i < n; ++i) out[i] += coefficients[places[i]] * products[i];
  }

  void FindErrors() {
    const auto n = static_cast<size_t>(part_.num_rows);
    const size_t num_terms = p_.terms_.size();
    std::vector<int32_t> columns(num_terms);
    std::vector<double> values(num_terms);
    rows_.standard_errors.resize(n);
    for (size_t i = 0; i < n; ++i) {
      size_t count = 0;
      for (size_t t = 0; t < num_terms; ++t) {
        const int32_t column = p_.terms_[t].columns[places_[t][i]];
        if (column < 0 || p_.estimated_[column] < 0) continue;
        columns[count] = p_.estimated_[column];
        values[count++] = products_[t][i];
      }
      double variance = 0;
      for (size_t a = 0; a < count; ++a) {
        double sum = p_.covariance_(columns[a], columns[a]) * values[a] / 2;
        for (size_t b = 0; b < a; ++b) sum += p_.covariance_(columns[a], columns[b]) * values[b];
        variance += 2 * values[a] * sum;
      }
      rows_.standard_errors[i] = std::sqrt(std::max(variance, 0.0));
    }
  }

  const RowPredictor& p_;
  const GlmEquation& equation_;
  const TablePart& part_;
  KnownCodes& known_;
  PredictedRows& rows_;
  std::vector<std::vector<double>> numbers_;   // by variable
  std::vector<std::vector<int32_t>> levels_;   // by variable
  std::vector<std::vector<int32_t>> places_;   // by term, the combination of levels
  std::vector<std::vector<double>> products_;  // by term, of its numbers
};

RowPredictor::RowPredictor(const GlmEquation& equation, FormulaColumns columns,
                           GlmCovariance covariance)
    : equation_(equation),
      columns_(std::move(columns)),
      wanted_(columns_.columns()),
      covariance_(std::move(covariance)) {
  for (int64_t t = -1; t < static_cast<int64_t>(equation.formula.terms.size()); ++t) {
    Term term = {{}, {}, equation.ColumnsOfTerm(t), equation.CoefficientsOfTerm(t)};
    if (t >= 0) {
      for (const int64_t v : equation.formula.terms[t].variables) {
        (equation.variables[v].is_factor ? term.factors : term.numbers).push_back(v);
      }
    }
    terms_.push_back(std::move(term));
  }
  for (size_t v = 0; v < equation.variables.size(); ++v) {
    finders_.push_back(equation.variables[v].is_factor
                           ? std::make_unique<LevelFinder>(equation, static_cast<int64_t>(v))
                           : nullptr);
  }
  int32_t next = 0;
  for (const bool is_aliased : equation.is_aliased) estimated_.push_back(is_aliased ? -1 : next++);
}

StatusOr<RowPredictor> RowPredictor::Create(const GlmEquation& equation, const TableHeader& header,
                                            GlmCovariance covariance) {
  TENON_ASSIGN_OR_RETURN(FormulaColumns columns, equation.ColumnsIn(header, false));
  const auto estimated = std::count(equation.is_aliased.begin(), equation.is_aliased.end(), false);
  if (!covariance.empty() && covariance.size() != estimated) {
    return InvalidArgument("the covariance is of ", covariance.size(), " estimates, the model has ",
                           estimated);
  }
  return RowPredictor(equation, std::move(columns), std::move(covariance));
}

void RowPredictor::Predict(const TablePart& part, KnownCodes* known, PredictedRows* rows) const {
  PartPredictor(*this, part, known, rows).Predict();
}

}  // namespace tenon
