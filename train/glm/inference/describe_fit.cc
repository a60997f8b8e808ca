// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/describe_fit.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "core/base/plural.h"
#include "core/base/strings.h"
#include "train/glm/inference/describe_penalty.h"
#include "train/glm/inference/describe_stream.h"
#include "train/glm/inference/fit_doubts.h"
#include "train/glm/inference/inference.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

constexpr size_t kWarnedLevels = 5, kWarnedColumns = 5;
/// An aliased column may be a sum of thousands of levels.
constexpr int kMostParts = 20;

class FitDescriber {
 public:
  FitDescriber(const FittedGlm& fitted, GlmResult* result)
      : fitted_(fitted), model_(*fitted.model), result_(result) {}

  void Describe() {
    const double rows = fitted_.totals.num_rows;
    const auto rank = static_cast<double>(model_.columns().size() - fit().aliased.size());
    result_->rows_used = static_cast<int64_t>(rows);
    result_->rows_missing = static_cast<int64_t>(fitted_.totals.num_missing);
    result_->rows_separated = static_cast<int64_t>(fitted_.totals.num_left_out);
    result_->residual_deviance = fit().deviance;
    result_->residual_df = static_cast<int64_t>(rows - rank);
    result_->null_df = static_cast<int64_t>(rows) - (fitted_.formula.has_intercept ? 1 : 0);
    result_->dispersion_is_estimated = is_gaussian();
    result_->dispersion = is_gaussian() ? fit().deviance / (rows - rank) : 1;
    const double constant = fitted_.totals.likelihood_constant;
    const double minus_twice =
        is_gaussian()
            ? rows * (std::log(2 * std::numbers::pi * fit().deviance / rows) + 1) - constant
            : fit().deviance - 2 * constant;
    const double parameters = rank + (is_gaussian() ? 1 : 0);
    result_->log_likelihood = -minus_twice / 2;
    result_->aic = minus_twice + 2 * parameters;
    result_->bic = minus_twice + std::log(rows) * parameters;
    if (!is_gaussian()) {
      result_->mcfadden_r2 = 1 - minus_twice / (result_->null_deviance - 2 * constant);
    }
    result_->robust = fitted_.squares.has_value();
    const bool is_newton = fitted_.chosen.method != GlmMethod::kLbfgs;
    result_->method = is_newton ? "newton" : "lbfgs";
    result_->method_reason = fitted_.chosen.reason;
    if (!is_newton) result_->newton_bytes = fitted_.chosen.newton_bytes;
    result_->converged = fit().converged;
    result_->objective = "maximum likelihood";
    if (fitted_.stream) {
      DescribeStream(fitted_, result_);
    } else if (!fitted_.penalty.is_none()) {
      DescribePenalty(fitted_, result_);
    }
    ListCoefficients();
    Warn();
    if (fitted_.penalised || fitted_.stream) return AddInference({}, result_);
    AddInference(WithoutAliased(model_.CovarianceToUnits(Covariance())), result_);
  }

  /// In units of the design.
  ArrowCovariance Covariance() const {
    ArrowCovariance covariance =
        fitted_.squares ? Sandwich(fit().inverse, *fitted_.squares) : fit().inverse;
    const double rows = fitted_.totals.num_rows;
    covariance.Multiply(fitted_.squares ? rows / static_cast<double>(result_->residual_df)
                                        : result_->dispersion);
    return covariance;
  }

  bool IsAliased(int64_t column) const {
    return std::binary_search(fit().aliased.begin(), fit().aliased.end(), column);
  }

  GlmCovariance WithoutAliased(const ArrowCovariance& covariance) const {
    const ArrowMatrix places = {covariance.levels, covariance.others, {}, {}};
    std::vector<int64_t> others, levels;
    GlmCovariance::Blocks blocks;
    for (int64_t i = 0; i < places.num_others(); ++i) {
      const int64_t column = places.ColumnOf(i);
      if (IsAliased(column)) continue;
      others.push_back(i);
      if (column < covariance.levels.begin) ++blocks.first_level;
    }
    for (int64_t l = 0; l < covariance.levels.count; ++l) {
      if (!IsAliased(covariance.levels.begin + l)) levels.push_back(l);
    }
    blocks.num_levels = static_cast<int64_t>(levels.size());
    const auto numbers_of = [](const Eigen::MatrixXd& matrix) {
      return std::vector<double>(matrix.data(), matrix.data() + matrix.size());
    };
    blocks.others = numbers_of(covariance.others(others, others));
    blocks.crossed = numbers_of(covariance.crossed(others, levels));
    // Rows of aliased columns are zero in one of these two.
    blocks.left = numbers_of(covariance.left(others, levels));
    blocks.right = numbers_of(covariance.right(others, levels));
    blocks.own = numbers_of(covariance.own(levels));
    return GlmCovariance(std::move(blocks));
  }

  /// The variable of a term that is one factor; -1 for other terms.
  int64_t FactorOf(int64_t term) const {
    if (term < 0 || fitted_.formula.terms[term].variables.size() != 1) return -1;
    const int64_t variable = fitted_.formula.terms[term].variables[0];
    return model_.variables()[variable].is_factor ? variable : -1;
  }

  GlmCoefficient DescribeColumn(size_t j, double estimate) const {
    const DesignColumn& column = model_.columns()[j];
    GlmCoefficient c;
    c.term = column.term < 0 ? "(Intercept)" : fitted_.formula.terms[column.term].label;
    c.name = NameOfColumn(fitted_.formula, model_.variables(), column);
    std::vector<std::string> levels;
    for (size_t i = 0; i < column.levels.size(); ++i) {
      if (column.levels[i] < 0) continue;
      const int64_t variable = fitted_.formula.terms[column.term].variables[i];
      levels.push_back(model_.variables()[variable].levels[column.levels[i]]);
    }
    c.level = Join(levels, ":");
    c.estimate = estimate;
    const int64_t factor = FactorOf(column.term);
    if (factor >= 0) {
      const double rows = fitted_.level_sums[factor].rows[column.levels[0]];
      const double share = rows / fitted_.totals.num_rows;
      c.rows = static_cast<int64_t>(rows);
      c.standardised = estimate * std::sqrt(share * (1 - share));
    } else if (column.term >= 0 && levels.empty()) {
      c.standardised = estimate * model_.deviation(j);
    }
    return c;
  }

  void ListCoefficients() {
    const Eigen::VectorXd estimates = model_.ToUnits(fit().coefficients);
    const auto& columns = model_.columns();
    for (size_t j = 0; j < columns.size(); ++j) {
      const int64_t factor = FactorOf(columns[j].term);
      if (factor >= 0 && (j == 0 || columns[j - 1].term != columns[j].term)) {
        AddReference(columns[j].term, factor);
      }
      GlmCoefficient c = DescribeColumn(j, estimates[static_cast<int64_t>(j)]);
      if (IsAliased(static_cast<int64_t>(j))) {
        const auto aliased = std::lower_bound(fit().aliased.begin(), fit().aliased.end(), j);
        c.status = CoefficientStatus::kAliased;
        c.estimate = kNotGiven;
        c.standardised = kNotGiven;
        const auto place = static_cast<size_t>(aliased - fit().aliased.begin());
        if (place < fit().dependences.size()) c.sum_of = SumOf(j, fit().dependences[place]);
      }
      // The intercept is free of a penalty.
      const bool may_be_zero = !fitted_.penalty.is_none() || fitted_.stream;
      if (may_be_zero && c.estimate == 0 && columns[j].term >= 0) {
        c.status = CoefficientStatus::kZero;
      }
      result_->coefficients.push_back(std::move(c));
      if (j + 1 == columns.size() || columns[j + 1].term != columns[j].term) {
        AddLeftOut(columns[j].term, factor);
      }
    }
  }

  /// The reference level has a line unless it has a coefficient.
  void AddReference(int64_t term, int64_t factor) {
    const DesignVariable& variable = model_.variables()[factor];
    const auto& columns = model_.columns();
    const bool has_own = std::any_of(columns.begin(), columns.end(), [&](const DesignColumn& c) {
      return c.term == term && c.levels[0] == variable.reference;
    });
    if (has_own) return;
    GlmCoefficient c;
    c.term = fitted_.formula.terms[term].label;
    c.level = variable.levels[variable.reference];
    c.name = StrCat(c.term, c.level);
    c.status = CoefficientStatus::kReference;
    c.rows = static_cast<int64_t>(fitted_.level_sums[factor].rows[variable.reference]);
    result_->coefficients.push_back(std::move(c));
  }

  void AddLeftOut(int64_t term, int64_t factor) {
    for (const SeparatedLevel& level : fitted_.separated) {
      if (level.is_kept || static_cast<int64_t>(level.variable) != factor) continue;
      GlmCoefficient c;
      c.term = fitted_.formula.terms[term].label;
      c.level = level.level;
      c.name = StrCat(c.term, c.level);
      c.status = CoefficientStatus::kSeparated;
      c.estimate = kNotGiven;
      c.rows = static_cast<int64_t>(level.rows);
      result_->coefficients.push_back(std::move(c));
    }
  }

  /// An aliased column as a sum of others, in the units of the data.
  std::string SumOf(size_t aliased, const ColumnSum& sum) const {
    // A coefficient of 1 on the aliased column does as much as these on the others.
    Eigen::VectorXd same = Eigen::VectorXd::Zero(static_cast<int64_t>(model_.columns().size()));
    for (const ColumnSum::Part& part : sum.parts) same[part.column] = part.factor;
    Eigen::VectorXd own = Eigen::VectorXd::Zero(same.size());
    own[static_cast<int64_t>(aliased)] = 1;
    const Eigen::VectorXd of_own = model_.ToUnits(own), of_same = model_.ToUnits(same);
    const double unit = of_own[static_cast<int64_t>(aliased)];
    std::string text;
    int parts = 0;
    for (int64_t j = 0; j < same.size(); ++j) {
      double factor = of_same[j] / unit;
      if (j == 0 && fitted_.formula.has_intercept) factor = (of_same[0] - of_own[0]) / unit;
      const bool is_intercept = model_.columns()[j].term < 0;
      if (std::abs(factor) < 1e-6 * (is_intercept ? std::abs(of_own[0] / unit) + 1e-3 : 1e-6)) {
        continue;
      }
      if (++parts > kMostParts) continue;
      StrAppend(&text, text.empty() ? "" : " + ", factor, " x ",
                NameOfColumn(fitted_.formula, model_.variables(), model_.columns()[j]));
    }
    if (parts > kMostParts) StrAppend(&text, " + ", parts - kMostParts, " more");
    return text;
  }

  void Warn() {
    if (!fit().converged && !fitted_.stream) {
      const bool may_have_none = fitted_.penalty.is_none() && !is_gaussian();
      result_->warnings.push_back(
          StrCat("not converged after ", fit().passes, " passes",
                 may_have_none ? ": where all responses of some combination of levels are alike no "
                                 "estimate is finite, and --ridge has one"
                               : ""));
    }
    if (fitted_.totals.num_weightless > 0) {
      const auto rows = static_cast<int64_t>(fitted_.totals.num_weightless);
      result_->warnings.push_back(
          StrCat("rows left out, since their weight is 0: ", CountText(rows)));
    }
    WarnOfSingleLevels();
    if (!fitted_.penalty.is_none() || fitted_.stream) return;
    if (result_->residual_df <= 0) {
      result_->warnings.push_back(
          "there are as many coefficients as rows: the fit repeats the data, and its tests mean "
          "nothing");
    }
    if (!fit().aliased.empty()) result_->warnings.push_back(WarningOfAliased());
    for (std::string& warning : DoubtsOf(fitted_)) result_->warnings.push_back(std::move(warning));
    size_t num_left_out = 0;
    for (const SeparatedLevel& level : fitted_.separated) {
      if (!level.is_kept && ++num_left_out > kWarnedLevels) continue;
      result_->warnings.push_back(WarningOf(level));
    }
    if (num_left_out > kWarnedLevels) {
      result_->warnings.push_back(StrCat(Plural(static_cast<int64_t>(num_left_out - kWarnedLevels),
                                                "more level is", "more levels are"),
                                         " left out like these"));
    }
  }

  /// A factor that has one level has no coefficient beside the intercept.
  void WarnOfSingleLevels() {
    for (size_t t = 0; t < fitted_.formula.terms.size(); ++t) {
      const int64_t factor = FactorOf(static_cast<int64_t>(t));
      if (factor < 0 || model_.variables()[factor].levels.size() != 1) continue;
      const auto& columns = model_.columns();
      const bool has_column =
          std::any_of(columns.begin(), columns.end(),
                      [&](const DesignColumn& c) { return c.term == static_cast<int64_t>(t); });
      if (has_column) continue;
      result_->warnings.push_back(StrCat(fitted_.formula.terms[t].label, " has one level, '",
                                         model_.variables()[factor].levels[0],
                                         "': it has no coefficient"));
    }
  }

  std::string WarningOfAliased() const {
    std::vector<std::string> names;
    for (const int64_t j : fit().aliased) {
      if (names.size() == kWarnedColumns) {
        names.push_back(StrCat(fit().aliased.size() - kWarnedColumns, " more"));
        break;
      }
      names.push_back(NameOfColumn(fitted_.formula, model_.variables(), model_.columns()[j]));
    }
    const std::string text = Join(names, ", ");
    if (fitted_.chosen.method == GlmMethod::kLbfgs)
      return StrCat(text, " have no rows: no estimate (NA)");
    const ColumnRange& levels = fit().inverse.levels;
    // The levels that are eliminated count as if they stood first; R would drop some of them.
    if (levels.count > 0 && levels.begin > fit().aliased.front()) {
      const std::string factor = fitted_.formula.terms[model_.columns()[levels.begin].term].label;
      return StrCat(text, " cannot be told from what stands before and the levels of ", factor,
                    ": no estimate (NA); of so many columns the levels of ", factor,
                    " are taken out first, R drops what stands last");
    }
    return StrCat(text, " cannot be told from what stands before: no estimate (NA)");
  }

  std::string WarningOf(const SeparatedLevel& level) const {
    const std::string name =
        StrCat(fitted_.formula.variables[level.variable].label, " = ", level.level);
    if (level.is_kept) {
      return StrCat(name, ": all responses are alike; its estimate is not finite, ",
                    "and its tests mean nothing");
    }
    return StrCat(name, " has ", level.rows,
                  level.rows == 1 ? " row, and its " : " rows, and their ", result_->response,
                  " is ", level.response,
                  ": no finite coefficient; level and rows left out (--separated keep|error)");
  }

 private:
  const FisherScoringFit& fit() const { return fitted_.fit; }
  bool is_gaussian() const { return fitted_.family == GlmFamily::kGaussian; }

  const FittedGlm& fitted_;
  const GlmModel& model_;
  GlmResult* const result_;
};

}  // namespace

void DescribeFit(const FittedGlm& fitted, GlmResult* result) {
  FitDescriber(fitted, result).Describe();
}

}  // namespace tenon
