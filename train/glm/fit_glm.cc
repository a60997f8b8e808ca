// SPDX-License-Identifier: Apache-2.0
#include "train/glm/fit_glm.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/base/strings.h"
#include "data/table_places/table_places.h"
#include "runtime/device/machine_clock.h"
#include "runtime/session/local_session.h"
#include "train/glm/fisher_scoring.h"
#include "train/glm/glm_model.h"
#include "train/glm/inference.h"

namespace tenon {
namespace {

constexpr int64_t kShownTexts = 5;
constexpr size_t kShownLevels = 5;
constexpr int kMostNullPasses = 50;
// A mean of 0 or 1 has an infinite predictor.
constexpr double kMostPredictor = 700;

/// A level that was left out.
struct LeftOutLevel {
  size_t variable;
  std::string level;
  double rows, response;  // the response of each of its rows
};

/// The work on one model.
class Fitter {
 public:
  explicit Fitter(const GlmOptions& options)
      : options_(options), link_(options.link.value_or(DefaultLink(options.family))) {}

  StatusOr<GlmResult> Fit(std::string_view formula, const std::vector<std::string>& files) {
    const Clock::Time begin = MachineClock().Now();
    TENON_RETURN_IF_ERROR(CheckLink(options_.family, link_));
    TENON_RETURN_IF_ERROR(Open(formula, files));
    TENON_RETURN_IF_ERROR(Read());
    TENON_RETURN_IF_ERROR(SettleModel());
    TENON_RETURN_IF_ERROR(Solve());
    TENON_RETURN_IF_ERROR(FindNullDeviance());
    Describe();
    result_.seconds = std::chrono::duration<double>(MachineClock().Now() - begin).count();
    return std::move(result_);
  }

 private:
  StatusOr<std::vector<double>> Pass(const GlmSumsLayout& layout,
                                     absl::Span<const double> coefficients) {
    result_.bytes_of_sums = std::max(result_.bytes_of_sums, layout.size() * 8);
    TENON_ASSIGN_OR_RETURN(std::vector<double> sums, tasks_->Sums(layout, coefficients));
    const GlmTotals totals = TotalsOf(sums);
    const auto seen = static_cast<int64_t>(totals.num_rows + totals.num_missing +
                                           totals.num_weightless + totals.num_left_out +
                                           totals.num_infinite);
    if (seen != num_rows_) {
      return DataLoss("a pass saw ", seen, " rows of a table of ", num_rows_);
    }
    return sums;
  }

  Status Open(std::string_view text, const std::vector<std::string>& patterns) {
    TENON_ASSIGN_OR_RETURN(std::vector<TableFile> files, FindTableFiles(patterns));
    TableSchema schema;
    schema.format = options_.format;
    TENON_ASSIGN_OR_RETURN(schema.header, ReadTableHeader(files, schema.format));
    const std::vector<std::string> reserved =
        options_.weights.empty() ? std::vector<std::string>() : std::vector{options_.weights};
    TENON_ASSIGN_OR_RETURN(formula_, ParseFormula(text, schema.header.names, reserved));
    TENON_ASSIGN_OR_RETURN(columns_,
                           FormulaColumns::Of(formula_, options_.weights, schema.header));
    schema.columns = columns_.columns();
    for (const std::string& name : options_.categories) {
      TENON_ASSIGN_OR_RETURN(const int64_t place, FindColumn(schema.header, name));
      for (WantedColumn& column : schema.columns) column.as_text |= column.place == place;
    }
    result_.formula = text;
    result_.response = formula_.response.label;
    result_.family = NameOf(options_.family);
    result_.link = NameOf(link_);
    result_.level = options_.level;
    for (const TableFile& file : files) result_.files.push_back({file.path, file.size});
    auto units = CutIntoUnits(files, options_.unit_bytes);
    const auto local = [](const Graph& graph) { return MakeLocalSession(graph); };
    TENON_ASSIGN_OR_RETURN(
        tasks_, TableTasks::Open(std::move(files), std::move(schema), std::move(units),
                                 options_.devices,
                                 options_.make_session ? options_.make_session : local));
    return OkStatus();
  }

  Status Read() {
    TENON_ASSIGN_OR_RETURN(const TableSettlement settled, tasks_->Read());
    const TablePlaces places(tasks_->files(), tasks_->schema(), tasks_->units(),
                             settled.first_lines);
    for (const DoubtfulColumn& column : settled.doubtful) {
      TENON_ASSIGN_OR_RETURN(const std::vector<PlacedText> texts,
                             tasks_->FindTexts(column.unit, column.column, kShownTexts));
      return InvalidArgument(places.OfDoubtful(column, texts));
    }
    std::vector<const UnitReport*> reports;
    for (const UnitReport& report : tasks_->reports()) reports.push_back(&report);
    TENON_RETURN_IF_ERROR(CheckRejects(places, reports, options_.max_rejects));
    num_rows_ = settled.num_rows;
    if (settled.num_rejected > 0) {
      result_.warnings.push_back(StrCat(settled.num_rejected, " bad records were left out"));
    }
    if (num_rows_ == 0) {
      return InvalidArgument("the table in '", tasks_->files()[0].path, "' has no rows");
    }
    const auto num_columns = static_cast<int64_t>(tasks_->schema().columns.size());
    for (int64_t c = 0; c < num_columns; ++c) {
      kinds_.is_text.push_back(tasks_->IsText(c));
      const int64_t missing = tasks_->NumMissing(c);
      if (missing > 0) result_.missing_by_column.emplace_back(columns_.NameOf(c), missing);
      if (missing == num_rows_) {
        return InvalidArgument("column '", columns_.NameOf(c), "' has no values");
      }
      if (!kinds_.is_text.back()) continue;
      TENON_ASSIGN_OR_RETURN(kinds_.levels[c], tasks_->Levels(c));
    }
    return OkStatus();
  }

  /// The levels to take out: those without rows, and those that are separated. The second are kept
  /// in `left_out_`.
  StatusOr<std::vector<std::vector<bool>>> LevelsToLeaveOut(const GlmSums& sums) {
    const auto levels = model_->LevelSumsOf(sums);
    std::vector<std::vector<bool>> out(levels.size());
    std::vector<std::string> separated;
    for (size_t v = 0; v < levels.size(); ++v) {
      const bool is_alone =
          std::any_of(formula_.terms.begin(), formula_.terms.end(), [&](const FormulaTerm& t) {
            return t.variables == std::vector<int64_t>{static_cast<int64_t>(v)};
          });
      for (size_t l = 0; l < levels[v].rows.size(); ++l) {
        const double rows = levels[v].rows[l], sum = levels[v].responses[l];
        const bool is_separated =
            is_alone && rows > 0 && options_.family != GlmFamily::kGaussian &&
            (sum == 0 || (options_.family == GlmFamily::kBinomial && sum == rows));
        const std::string& name = model_->variables()[v].levels[l];
        out[v].push_back(rows == 0 ||
                         (is_separated && options_.separated != SeparatedLevels::kKeep));
        if (!is_separated) continue;
        separated.push_back(StrCat(formula_.variables[v].label, " = ", name));
        if (options_.separated == SeparatedLevels::kDrop) {
          left_out_.push_back({v, name, rows, sum / rows});
        } else if (options_.separated == SeparatedLevels::kKeep) {
          kept_separated_[{v, name}] = true;
        }
      }
    }
    if (!separated.empty() && options_.separated == SeparatedLevels::kError) {
      const size_t count = separated.size();
      separated.resize(std::min(count, kShownLevels));
      return InvalidArgument(count, count == 1 ? " level has" : " levels have",
                             " no finite coefficient, since all its responses are alike: ",
                             Join(separated, ", "), "; --separated drop leaves them out with "
                             "their rows, --separated keep keeps them");
    }
    return out;
  }

  Status SettleModel() {
    TENON_ASSIGN_OR_RETURN(GlmModel made,
                           GlmModel::Create(formula_, columns_, kinds_, options_.weights,
                                            options_.family, link_));
    model_.emplace(std::move(made));
    while (true) {
      const GlmSumsLayout layout(model_->margins(), GlmPass::kRows);
      const std::vector<double> none(model_->margins().num_columns());
      TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers, Pass(layout, none));
      totals_ = TotalsOf(numbers);
      if (totals_.num_infinite > 0) {
        return InvalidArgument("a number of the formula is not finite in ", totals_.num_infinite,
                               " rows, as log(0) is");
      }
      if (totals_.num_rows == 0) {
        return InvalidArgument("no row is left: ", totals_.num_missing, " of ", num_rows_,
                               " have a missing value, ", totals_.num_weightless,
                               " have no weight, ", totals_.num_left_out, " a separated level");
      }
      const GlmSums sums(layout, numbers);
      TENON_ASSIGN_OR_RETURN(const auto out, LevelsToLeaveOut(sums));
      const bool any = std::any_of(out.begin(), out.end(), [](const std::vector<bool>& levels) {
        return std::find(levels.begin(), levels.end(), true) != levels.end();
      });
      if (!any) {
        level_sums_ = model_->LevelSumsOf(sums);
        model_->Settle(sums, totals_.num_rows);
        return OkStatus();
      }
      model_->LeaveOut(out);
    }
  }

  Status Solve() {
    const GlmSumsFunction pass = [this](const GlmSumsLayout& layout,
                                        absl::Span<const double> coefficients) {
      return Pass(layout, coefficients);
    };
    FisherScoringOptions options;
    options.progress = [this](int number, double deviance, double gradient) {
      result_.iterations.push_back({number, deviance, gradient});
      if (options_.progress) options_.progress(result_.iterations.back());
    };
    TENON_ASSIGN_OR_RETURN(fit_, FitByFisherScoring(*model_, StartOfIntercept(), pass, options));
    return OkStatus();
  }

  /// The predictor of the mean response, moved inside where that is at the edge.
  double StartOfIntercept() const {
    double mean = totals_.weighted_response / totals_.weight;
    if (options_.family == GlmFamily::kBinomial) {
      mean = (totals_.weighted_response + 0.5) / (totals_.weight + 1);
    } else if (options_.family == GlmFamily::kPoisson) {
      mean = (totals_.weighted_response + 0.1) / totals_.weight;
    }
    return PredictorOf(link_, mean);
  }

  /// The deviance of a model that has an intercept alone, where the formula has one.
  Status FindNullDeviance() {
    std::vector<double> coefficients(model_->design().num_columns());
    if (formula_.has_intercept && formula_.offsets.empty()) {
      const double mean = totals_.weighted_response / totals_.weight;
      const double predictor = PredictorOf(link_, mean);
      coefficients[0] =
          std::isfinite(predictor) ? predictor : std::copysign(kMostPredictor, predictor);
    } else if (formula_.has_intercept) {
      TENON_ASSIGN_OR_RETURN(coefficients[0], FindNullIntercept());
    }
    const GlmSumsLayout deviance(model_->design(), GlmPass::kDeviance);
    TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers, Pass(deviance, coefficients));
    result_.null_deviance = TotalsOf(numbers).deviance;
    return OkStatus();
  }

  /// The intercept that is best beside the offsets.
  StatusOr<double> FindNullIntercept() {
    std::vector<double> coefficients(model_->design().num_columns());
    coefficients[0] = StartOfIntercept();
    const GlmSumsLayout layout(model_->design(), GlmPass::kNewton);
    for (int i = 0; i < kMostNullPasses; ++i) {
      TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers, Pass(layout, coefficients));
      const GlmSums sums(layout, numbers);
      const double step = sums.Gradient({0}) / sums.Product({0}, {0});
      coefficients[0] += step;
      if (std::abs(step) <= 1e-12 * (1 + std::abs(coefficients[0]))) break;
    }
    return coefficients[0];
  }

  void Describe() {
    const double rows = totals_.num_rows;
    const auto rank = static_cast<double>(model_->columns().size() - fit_.aliased.size());
    const bool is_gaussian = options_.family == GlmFamily::kGaussian;
    result_.rows_used = static_cast<int64_t>(rows);
    result_.rows_missing = static_cast<int64_t>(totals_.num_missing);
    result_.rows_separated = static_cast<int64_t>(totals_.num_left_out);
    result_.residual_deviance = fit_.deviance;
    result_.residual_df = static_cast<int64_t>(rows - rank);
    result_.null_df = static_cast<int64_t>(rows) - (formula_.has_intercept ? 1 : 0);
    result_.dispersion_is_estimated = is_gaussian;
    result_.dispersion = is_gaussian ? fit_.deviance / (rows - rank) : 1;
    const double constant = totals_.likelihood_constant;
    const double minus_twice =
        is_gaussian
            ? rows * (std::log(2 * std::numbers::pi * fit_.deviance / rows) + 1) - constant
            : fit_.deviance - 2 * constant;
    const double parameters = rank + (is_gaussian ? 1 : 0);
    result_.log_likelihood = -minus_twice / 2;
    result_.aic = minus_twice + 2 * parameters;
    result_.bic = minus_twice + std::log(rows) * parameters;
    if (!is_gaussian) {
      result_.mcfadden_r2 = 1 - minus_twice / (result_.null_deviance - 2 * constant);
    }
    result_.method = "newton";
    result_.converged = fit_.converged;
    result_.objective = "maximum likelihood";
    ListCoefficients();
    Warn();
    const Eigen::MatrixXd all = model_->CovarianceToUnits(fit_.inverse) * result_.dispersion;
    std::vector<int64_t> kept;
    for (int64_t j = 0; j < all.rows(); ++j) {
      if (!std::binary_search(fit_.aliased.begin(), fit_.aliased.end(), j)) kept.push_back(j);
    }
    AddInference(all(kept, kept), &result_);
  }

  /// The variable of a term that is one factor; -1 for other terms.
  int64_t FactorOf(int64_t term) const {
    if (term < 0 || formula_.terms[term].variables.size() != 1) return -1;
    const int64_t variable = formula_.terms[term].variables[0];
    return model_->variables()[variable].is_factor ? variable : -1;
  }

  GlmCoefficient DescribeColumn(size_t j, double estimate) const {
    const DesignColumn& column = model_->columns()[j];
    GlmCoefficient c;
    c.term = column.term < 0 ? "(Intercept)" : formula_.terms[column.term].label;
    c.name = NameOfColumn(formula_, model_->variables(), column);
    std::vector<std::string> levels;
    for (size_t i = 0; i < column.levels.size(); ++i) {
      if (column.levels[i] < 0) continue;
      const int64_t variable = formula_.terms[column.term].variables[i];
      levels.push_back(model_->variables()[variable].levels[column.levels[i]]);
    }
    c.level = Join(levels, ":");
    c.estimate = estimate;
    const int64_t factor = FactorOf(column.term);
    if (factor >= 0) {
      const double rows = level_sums_[factor].rows[column.levels[0]];
      const double share = rows / totals_.num_rows;
      c.rows = static_cast<int64_t>(rows);
      c.standardised = estimate * std::sqrt(share * (1 - share));
    } else if (column.term >= 0 && levels.empty()) {
      c.standardised = estimate * model_->deviation(j);
    }
    return c;
  }

  void ListCoefficients() {
    const Eigen::VectorXd estimates = model_->ToUnits(fit_.coefficients);
    const auto& columns = model_->columns();
    for (size_t j = 0; j < columns.size(); ++j) {
      const int64_t factor = FactorOf(columns[j].term);
      if (factor >= 0 && (j == 0 || columns[j - 1].term != columns[j].term)) {
        AddReference(columns[j].term, factor);
      }
      GlmCoefficient c = DescribeColumn(j, estimates[static_cast<int64_t>(j)]);
      const auto aliased = std::lower_bound(fit_.aliased.begin(), fit_.aliased.end(), j);
      if (aliased != fit_.aliased.end() && *aliased == static_cast<int64_t>(j)) {
        c.status = CoefficientStatus::kAliased;
        c.estimate = kNotGiven;
        c.standardised = kNotGiven;
        c.sum_of = SumOf(j, fit_.dependences[aliased - fit_.aliased.begin()]);
      }
      result_.coefficients.push_back(std::move(c));
      if (j + 1 == columns.size() || columns[j + 1].term != columns[j].term) {
        AddLeftOut(columns[j].term, factor);
      }
    }
  }

  /// The reference level has a line unless it has a coefficient.
  void AddReference(int64_t term, int64_t factor) {
    const DesignVariable& variable = model_->variables()[factor];
    const auto& columns = model_->columns();
    const bool has_own = std::any_of(columns.begin(), columns.end(), [&](const DesignColumn& c) {
      return c.term == term && c.levels[0] == variable.reference;
    });
    if (has_own) return;
    GlmCoefficient c;
    c.term = formula_.terms[term].label;
    c.level = variable.levels[variable.reference];
    c.name = StrCat(c.term, c.level);
    c.status = CoefficientStatus::kReference;
    c.rows = static_cast<int64_t>(level_sums_[factor].rows[variable.reference]);
    result_.coefficients.push_back(std::move(c));
  }

  void AddLeftOut(int64_t term, int64_t factor) {
    for (const LeftOutLevel& level : left_out_) {
      if (factor < 0 || level.variable != static_cast<size_t>(factor)) continue;
      GlmCoefficient c;
      c.term = formula_.terms[term].label;
      c.level = level.level;
      c.name = StrCat(c.term, c.level);
      c.status = CoefficientStatus::kSeparated;
      c.estimate = kNotGiven;
      c.rows = static_cast<int64_t>(level.rows);
      result_.coefficients.push_back(std::move(c));
    }
  }

  /// An aliased column as a sum of others, in the units of the data.
  std::string SumOf(size_t aliased, const ColumnSum& sum) const {
    // A coefficient of 1 on the aliased column does as much as these on the others.
    Eigen::VectorXd same = Eigen::VectorXd::Zero(static_cast<int64_t>(model_->columns().size()));
    for (const ColumnSum::Part& part : sum.parts) same[part.column] = part.factor;
    Eigen::VectorXd own = Eigen::VectorXd::Zero(same.size());
    own[static_cast<int64_t>(aliased)] = 1;
    const Eigen::VectorXd of_own = model_->ToUnits(own), of_same = model_->ToUnits(same);
    const double unit = of_own[static_cast<int64_t>(aliased)];
    std::string text;
    for (int64_t j = 0; j < same.size(); ++j) {
      double factor = of_same[j] / unit;
      if (j == 0 && formula_.has_intercept) factor = (of_same[0] - of_own[0]) / unit;
      const bool is_intercept = model_->columns()[j].term < 0;
      if (std::abs(factor) < 1e-6 * (is_intercept ? std::abs(of_own[0] / unit) + 1e-3 : 1e-6)) {
        continue;
      }
      StrAppend(&text, text.empty() ? "" : " + ", factor, " x ",
                NameOfColumn(formula_, model_->variables(), model_->columns()[j]));
    }
    return text;
  }

  void Warn() {
    if (!fit_.converged) {
      result_.warnings.push_back(StrCat("not converged after ", fit_.passes, " passes"));
    }
    if (totals_.num_weightless > 0) {
      result_.warnings.push_back(StrCat(totals_.num_weightless, " rows have no weight"));
    }
    for (size_t i = 0; i < left_out_.size() && i < kShownLevels; ++i) {
      const LeftOutLevel& level = left_out_[i];
      result_.warnings.push_back(
          StrCat(formula_.variables[level.variable].label, " = ", level.level, " has ", level.rows,
                 level.rows == 1 ? " row, and its " : " rows, and their ", result_.response,
                 " is ", level.response,
                 ": no finite coefficient; level and rows left out (--separated keep|error)"));
    }
    if (left_out_.size() > kShownLevels) {
      result_.warnings.push_back(
          StrCat(left_out_.size() - kShownLevels, " more levels are left out like these"));
    }
    for (const auto& [level, is_kept] : kept_separated_) {
      result_.warnings.push_back(StrCat(formula_.variables[level.first].label, " = ",
                                        level.second, ": all responses are alike; its estimate ",
                                        "is not finite, and its tests mean nothing"));
    }
  }

  const GlmOptions& options_;
  const GlmLink link_;
  GlmResult result_;
  Formula formula_;
  FormulaColumns columns_;
  std::unique_ptr<TableTasks> tasks_;
  int64_t num_rows_ = 0;
  ColumnKinds kinds_;
  std::optional<GlmModel> model_;
  std::vector<LeftOutLevel> left_out_;
  std::map<std::pair<size_t, std::string>, bool> kept_separated_;
  std::vector<GlmModel::LevelSums> level_sums_;
  GlmTotals totals_;
  FisherScoringFit fit_;
};

}  // namespace

StatusOr<GlmResult> FitGlm(std::string_view formula, const std::vector<std::string>& files,
                           const GlmOptions& options) {
  return Fitter(options).Fit(formula, files);
}

}  // namespace tenon
