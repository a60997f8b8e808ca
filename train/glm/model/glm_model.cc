// SPDX-License-Identifier: Apache-2.0
#include "train/glm/model/glm_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/strings.h"
#include "ops/fingerprint.h"
#include "ops/glm/bad_row.h"

namespace tenon {
namespace {

/// The largest power of two that is not above `x`, which is positive.
double PowerOfTwo(double x) { return std::ldexp(1, std::ilogb(x)); }

/// 0, 1 and so on.
std::vector<int32_t> AllOf(int64_t count) {
  std::vector<int32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

std::string IntervalName(double low, double high) { return StrCat("(", low, ",", high, "]"); }

GlmNumber ProductOf(const std::vector<GlmNumber>& numbers, const std::vector<int64_t>& which) {
  GlmNumber product;
  for (size_t i = 0; i < which.size(); ++i) {
    const GlmNumber& number = numbers[which[i]];
    const auto shift = static_cast<int64_t>(product.columns.size());
    for (NumericExpression::Step step : number.expression.steps) {
      if (step.op == NumericExpression::Op::kColumn) step.index += shift;
      product.expression.steps.push_back(step);
    }
    product.columns.insert(product.columns.end(), number.columns.begin(), number.columns.end());
    if (i > 0) product.expression.steps.push_back({NumericExpression::Op::kMultiply});
  }
  return product;
}

StatusOr<GlmNumber> GlmModel::NumberOf(const NumericExpression& expression,
                                       std::string_view label) const {
  GlmNumber number;
  number.expression = expression;
  for (const std::string& name : expression.columns) {
    const int64_t column = table_columns_.AsItIs(name);
    if (kinds_.is_text[column]) {
      return InvalidArgument("'", label, "' wants numbers, but column '", name,
                             "' has texts such as '", kinds_.levels.at(column).texts.front(), "'");
    }
    number.columns.push_back(column);
  }
  return number;
}

Status GlmModel::AddFactor(const FormulaVariable& variable, int64_t column) {
  const TableLevels& levels = kinds_.levels.at(column);
  GlmFactor factor;
  factor.column = column;
  factor.num_levels = static_cast<int64_t>(levels.texts.size());
  DesignVariable design = {true, levels.texts, 0};
  if (variable.kind == FormulaVariable::Kind::kHash) {
    factor.num_levels = variable.num_buckets;
    for (const std::string& text : levels.texts) {
      factor.level_of_code.push_back(
          static_cast<int32_t>(Fingerprint64(text) % variable.num_buckets));
    }
    design.levels.clear();
    for (int64_t i = 0; i < variable.num_buckets; ++i) design.levels.push_back(StrCat(i));
  }
  if (variable.reference) {
    const auto found = std::find(levels.texts.begin(), levels.texts.end(), *variable.reference);
    if (found == levels.texts.end()) {
      return InvalidArgument("column '", variable.column, "' has no level '", *variable.reference,
                             "', which ", variable.label, " takes for the reference");
    }
    design.reference = found - levels.texts.begin();
  }
  if (variable.frequent_reference) {
    design.reference =
        std::max_element(levels.counts.begin(), levels.counts.end()) - levels.counts.begin();
  }
  factors_.back() = static_cast<int64_t>(margins_.factors.size());
  margins_.factors.push_back(std::move(factor));
  variables_.back() = std::move(design);
  return OkStatus();
}

Status GlmModel::AddVariable(const FormulaVariable& variable) {
  using Kind = FormulaVariable::Kind;
  numbers_.emplace_back();
  factors_.push_back(-1);
  variables_.emplace_back();
  if (variable.kind == Kind::kCategory || variable.kind == Kind::kHash) {
    return AddFactor(variable, table_columns_.AsText(variable.column));
  }
  if (variable.kind == Kind::kColumn) {
    const int64_t column = table_columns_.AsItIs(variable.column);
    if (kinds_.is_text[column]) return AddFactor(variable, column);
    numbers_.back() = {{{{NumericExpression::Op::kColumn}}, {variable.column}}, {column}};
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(GlmNumber number, NumberOf(variable.number, variable.label));
  if (variable.kind == Kind::kNumber) {
    numbers_.back() = std::move(number);
    return OkStatus();
  }
  GlmFactor factor;
  factor.number = std::move(number);
  factor.breaks = variable.breaks;
  factor.num_levels = static_cast<int64_t>(variable.breaks.size()) - 1;
  DesignVariable design = {true, {}, 0};
  for (int64_t i = 0; i < factor.num_levels; ++i) {
    design.levels.push_back(IntervalName(variable.breaks[i], variable.breaks[i + 1]));
  }
  factors_.back() = static_cast<int64_t>(margins_.factors.size());
  margins_.factors.push_back(std::move(factor));
  variables_.back() = std::move(design);
  return OkStatus();
}

Status GlmModel::SetResponse() {
  const FormulaResponse& from = formula_.response;
  GlmResponse& to = margins_.response;
  if (from.kind == FormulaResponse::Kind::kCounts && margins_.family != GlmFamily::kBinomial) {
    return InvalidArgument("the response ", from.label, " wants family binomial, found ",
                           NameOf(margins_.family));
  }
  const auto set_level = [&](int64_t column, const std::string& text) -> Status {
    const auto& texts = kinds_.levels.at(column).texts;
    const auto found = std::find(texts.begin(), texts.end(), text);
    if (found == texts.end()) {
      return InvalidArgument("column '", from.column, "' is never '", text, "'");
    }
    to.column = column;
    to.code = static_cast<int32_t>(found - texts.begin());
    return OkStatus();
  };
  if (from.kind == FormulaResponse::Kind::kEquals) {
    return set_level(table_columns_.AsText(from.column), from.text);
  }
  const auto& steps = from.number.steps;
  if (from.kind == FormulaResponse::Kind::kNumber && steps.size() == 1 &&
      steps[0].op == NumericExpression::Op::kColumn) {
    const int64_t column = table_columns_.AsItIs(from.number.columns[0]);
    const bool is_binomial = margins_.family == GlmFamily::kBinomial;
    if (kinds_.is_text[column]) {
      const auto& texts = kinds_.levels.at(column).texts;
      if (is_binomial && texts.size() != 2) {
        return InvalidArgument(
            "the response '", from.label, "' must have two levels, found ", texts.size(), ": '",
            texts[0], "'", texts.size() > 2 ? StrCat(", '", texts[1], "', '", texts[2], "'") : "",
            "; say which one counts: ", from.label, " == \"...\"");
      }
      if (is_binomial) return set_level(column, texts[1]);
      if (texts.size() == 2) {
        return InvalidArgument("the response '", from.label, "' has the texts '", texts[0],
                               "' and '", texts[1], "', which family binomial takes; family ",
                               NameOf(margins_.family), " wants numbers");
      }
    }
  }
  TENON_ASSIGN_OR_RETURN(to.number, NumberOf(from.number, from.label));
  if (from.kind == FormulaResponse::Kind::kCounts) {
    TENON_ASSIGN_OR_RETURN(to.failures, NumberOf(from.failures, from.label));
  }
  return OkStatus();
}

std::vector<int64_t> GlmModel::NumbersOf(const FormulaTerm& term) const {
  std::vector<int64_t> numbers;
  for (const int64_t v : term.variables) {
    if (factors_[v] < 0) numbers.push_back(v);
  }
  return numbers;
}

std::vector<int64_t> GlmModel::FactorsOf(const FormulaTerm& term) const {
  std::vector<int64_t> factors;
  for (const int64_t v : term.variables) {
    if (factors_[v] >= 0) factors.push_back(factors_[v]);
  }
  return factors;
}

void GlmModel::ListProducts() {
  for (const FormulaTerm& term : formula_.terms) {
    const std::vector<int64_t> numbers = NumbersOf(term);
    if (numbers.empty() ||
        std::find(products_.begin(), products_.end(), numbers) != products_.end()) {
      continue;
    }
    products_.push_back(numbers);
    margins_.groups.push_back({static_cast<int64_t>(margins_.numbers.size()), {}});
    margins_.numbers.push_back(ProductOf(numbers_, numbers));
  }
  for (size_t f = 0; f < margins_.factors.size(); ++f) {
    margins_.groups.push_back({-1, {static_cast<int64_t>(f)}});
  }
}

StatusOr<GlmModel> GlmModel::Create(const Formula& formula, const FormulaColumns& columns,
                                    const ColumnKinds& kinds, const std::string& weights,
                                    GlmFamily family, GlmLink link) {
  GlmModel model(formula, columns, kinds);
  model.margins_.family = family;
  model.margins_.link = link;
  TENON_RETURN_IF_ERROR(model.SetResponse());
  for (const FormulaVariable& variable : formula.variables) {
    TENON_RETURN_IF_ERROR(model.AddVariable(variable));
  }
  for (const NumericExpression& offset : formula.offsets) {
    TENON_ASSIGN_OR_RETURN(GlmNumber number, model.NumberOf(offset, "offset"));
    model.margins_.offsets.push_back(std::move(number));
  }
  if (!weights.empty()) {
    const int64_t column = columns.AsItIs(weights);
    if (kinds.is_text[column]) {
      return InvalidArgument("the weights of column '", weights, "' must be numbers, found '",
                             kinds.levels.at(column).texts.front(), "'");
    }
    model.margins_.weight_column = column;
  }
  model.margins_.groups.push_back({});
  model.ListProducts();
  return model;
}

std::string GlmModel::LabelOfNumber(int64_t part) const {
  if (part == BadGlmRow::kWeight) return table_columns_.NameOf(margins_.weight_column);
  if (part < BadGlmRow::kOthers) {
    const bool is_count = !margins_.response.failures.expression.steps.empty();
    const NumericExpression& number =
        part == BadGlmRow::kFailures ? formula_.response.failures : formula_.response.number;
    const bool is_column =
        number.steps.size() == 1 && number.steps[0].op == NumericExpression::Op::kColumn;
    if (is_column) return number.columns[0];
    if (!is_count) return formula_.response.label;
    return part == BadGlmRow::kFailures ? "the number of failures" : "the number of successes";
  }
  part -= BadGlmRow::kOthers;
  if (part < static_cast<int64_t>(margins_.offsets.size())) return "the offset";
  part -= static_cast<int64_t>(margins_.offsets.size());
  if (part < static_cast<int64_t>(products_.size())) {
    std::vector<std::string> labels;
    for (const int64_t v : products_[part]) labels.push_back(formula_.variables[v].label);
    return Join(labels, ":");
  }
  part -= static_cast<int64_t>(products_.size());
  for (size_t v = 0; v < factors_.size(); ++v) {
    if (factors_[v] == part) return formula_.variables[v].label;
  }
  return "";
}

std::vector<GlmModel::LevelSums> GlmModel::LevelSumsOf(const GlmSums& sums) const {
  std::vector<LevelSums> all(variables_.size());
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (factors_[v] < 0) continue;
    const auto group = static_cast<int64_t>(1 + products_.size()) + factors_[v];
    for (int64_t l = 0; l < static_cast<int64_t>(variables_[v].levels.size()); ++l) {
      all[v].rows.push_back(sums.Sum({group, l}));
      all[v].responses.push_back(sums.WithResponse({group, l}));
    }
  }
  return all;
}

void GlmModel::LeaveOut(const std::vector<std::vector<bool>>& left_out) {
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (std::find(left_out[v].begin(), left_out[v].end(), true) == left_out[v].end()) continue;
    DesignVariable& variable = variables_[v];
    GlmFactor& factor = margins_.factors[factors_[v]];
    std::vector<int32_t> places;
    std::vector<std::string> kept;
    for (size_t l = 0; l < variable.levels.size(); ++l) {
      places.push_back(left_out[v][l] ? -1 : static_cast<int32_t>(kept.size()));
      if (!left_out[v][l]) kept.push_back(variable.levels[l]);
    }
    if (factor.level_of_code.empty()) factor.level_of_code = AllOf(factor.num_levels);
    for (int32_t& level : factor.level_of_code) level = level < 0 ? -1 : places[level];
    factor.num_levels = static_cast<int64_t>(kept.size());
    variable.reference = std::max(0, places[variable.reference]);
    variable.levels = std::move(kept);
  }
}

void GlmModel::Settle(const GlmSums& sums, double num_rows, ColumnUnits units) {
  design_ = margins_;
  design_.numbers.clear();
  design_.groups = {{}};
  std::vector<double> means, deviations;
  for (size_t p = 0; p < products_.size(); ++p) {
    const auto group = static_cast<int64_t>(p) + 1;
    const double mean = sums.Sum({group}) / num_rows;
    const double variance = sums.Squares(group) / num_rows - mean * mean;
    means.push_back(mean);
    deviations.push_back(variance > 0 ? std::sqrt(variance) : 1);
  }
  std::vector<double> group_scales = {1}, group_centers = {0}, group_deviations = {1};
  for (const FormulaTerm& term : formula_.terms) {
    const std::vector<int64_t> numbers = NumbersOf(term);
    GlmGroup group = {-1, FactorsOf(term)};
    double scale = 1, center = 0;
    group_deviations.push_back(1);
    if (!numbers.empty()) {
      const auto p = std::find(products_.begin(), products_.end(), numbers) - products_.begin();
      const double unit =
          units == ColumnUnits::kDeviations ? deviations[p] : PowerOfTwo(deviations[p]);
      scale = 1 / unit;
      // The intercept takes up what centering takes away; nothing else does.
      if (group.factors.empty() && formula_.has_intercept) {
        // A center has few binary digits, so that numbers of few digits are centered exactly.
        const double step = std::ldexp(unit, -20);
        center = units == ColumnUnits::kDeviations ? means[p] : std::round(means[p] / step) * step;
      }
      group_deviations.back() = deviations[p];
      group.number = static_cast<int64_t>(design_.numbers.size());
      design_.numbers.push_back(margins_.numbers[p]);
      design_.numbers.back().scale = scale;
      design_.numbers.back().center = center;
    }
    group_scales.push_back(scale);
    group_centers.push_back(center);
    design_.groups.push_back(std::move(group));
  }
  columns_ = ListDesignColumns(formula_, variables_);
  for (const DesignColumn& column : columns_) {
    GlmSums::Column place = {column.term + 1, 0};
    int64_t stride = 1;
    for (size_t i = 0; i < column.levels.size(); ++i) {
      if (column.levels[i] < 0) continue;
      place.level += stride * column.levels[i];
      stride *= design_.factors[factors_[formula_.terms[column.term].variables[i]]].num_levels;
    }
    places_.push_back(place);
    scales_.push_back(group_scales[place.group]);
    centers_.push_back(group_centers[place.group]);
    deviations_.push_back(group_deviations[place.group]);
  }
}

Eigen::VectorXd GlmModel::ToUnits(const Eigen::VectorXd& coefficients) const {
  Eigen::VectorXd raw = coefficients;
  for (int64_t j = 0; j < raw.size(); ++j) {
    raw[j] *= scales_[j];
    if (centers_[j] != 0) raw[0] -= centers_[j] * raw[j];
  }
  return raw;
}

Eigen::VectorXd GlmModel::FromUnits(const Eigen::VectorXd& coefficients) const {
  Eigen::VectorXd own = coefficients;
  for (int64_t j = 0; j < own.size(); ++j) {
    if (centers_[j] != 0) own[0] += centers_[j] * coefficients[j];
    own[j] /= scales_[j];
  }
  return own;
}

ArrowCovariance GlmModel::CovarianceToUnits(ArrowCovariance covariance) const {
  // Levels that have a block of their own have no number, and so their units already.
  const ArrowMatrix blocks = {covariance.levels, covariance.others, {}, {}};
  const auto size = static_cast<int64_t>(columns_.size());
  const Eigen::VectorXd scales =
      blocks.OthersOf(Eigen::Map<const Eigen::VectorXd>(scales_.data(), size));
  const Eigen::VectorXd centers =
      blocks.OthersOf(Eigen::Map<const Eigen::VectorXd>(centers_.data(), size));
  covariance.others = (scales.asDiagonal() * covariance.others * scales.asDiagonal()).eval();
  covariance.crossed = (scales.asDiagonal() * covariance.crossed).eval();
  if (centers.isZero(0)) return covariance;
  covariance.others.row(0) -= (centers.transpose() * covariance.others).eval();
  covariance.others.col(0) -= (covariance.others * centers).eval();
  covariance.crossed.row(0) -= (centers.transpose() * covariance.crossed).eval();
  return covariance;
}

}  // namespace tenon
