// SPDX-License-Identifier: Apache-2.0
#include "train/glm/fit_glm.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/base/hash_map.h"
#include "core/base/strings.h"
#include "data/table_places/rejects_file.h"
#include "data/table_places/table_places.h"
#include "runtime/device/machine_clock.h"
#include "train/glm/formula/factor_notice.h"
#include "train/glm/inference/describe_fit.h"
#include "train/glm/inference/describe_penalty.h"
#include "train/glm/inference/describe_stream.h"
#include "train/glm/inference/equation_of_fit.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/predict/evaluate_glm.h"
#include "train/glm/rows/bad_row_message.h"
#include "train/glm/rows/stream_fit.h"
#include "train/glm/solvers/fisher_scoring.h"
#include "train/glm/solvers/null_intercept.h"
#include "train/glm/solvers/quasi_newton.h"

namespace tenon {
namespace {

constexpr int64_t kShownTexts = 5;
constexpr size_t kShownLevels = 5;
// A mean of 0 or 1 has an infinite predictor.
constexpr double kMostPredictor = 700;

/// The work on one model.
class Fitter {
 public:
  explicit Fitter(const GlmOptions& options)
      : options_(options), link_(options.link.value_or(DefaultLink(options.family))) {
    fitted_.family = options.family;
    fitted_.penalty = options.penalty;
  }

  StatusOr<GlmResult> Fit(std::string_view formula, const std::vector<std::string>& files) {
    TENON_RETURN_IF_ERROR(CheckLink(options_.family, link_));
    TENON_RETURN_IF_ERROR(CheckPenalty(options_.penalty));
    if (options_.robust && !options_.penalty.is_none()) {
      return InvalidArgument("under a penalty there are no standard errors, robust or not");
    }
    if (options_.stream && (options_.robust || !options_.start.empty())) {
      return InvalidArgument("a stream begins at coefficients of 0, and has no standard errors, ",
                             "robust or not");
    }
    if (options_.stream) {
      TENON_RETURN_IF_ERROR(CheckStream(*options_.stream, options_.penalty));
    }
    TENON_RETURN_IF_ERROR(Open(formula, files));
    TENON_RETURN_IF_ERROR(Read());
    TENON_RETURN_IF_ERROR(SettleModel());
    TENON_RETURN_IF_ERROR(Solve());
    TENON_RETURN_IF_ERROR(FindNullDeviance());
    DescribeFit(fitted_, &result_);
    result_.equation =
        EquationOf(fitted_, result_.formula, options_.weights, tasks_->schema(), columns_, kinds_);
    TENON_RETURN_IF_ERROR(AddMetrics());
    result_.seconds = Seconds();
    return std::move(result_);
  }

 private:
  double Seconds() const {
    return std::chrono::duration<double>(MachineClock().Now() - begin_).count();
  }

  StatusOr<std::vector<double>> Pass(const GlmSumsLayout& layout,
                                     absl::Span<const double> coefficients) {
    result_.bytes_of_sums = std::max(result_.bytes_of_sums, layout.size() * 8);
    TENON_ASSIGN_OR_RETURN(std::vector<double> sums, tasks_->Sums(layout, coefficients));
    const GlmTotals totals = TotalsOf(sums);
    const auto seen =
        static_cast<int64_t>(totals.num_rows + totals.num_missing + totals.num_weightless +
                             totals.num_left_out + totals.num_infinite);
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
    TENON_ASSIGN_OR_RETURN(fitted_.formula, ParseFormula(text, schema.header.names, reserved));
    TENON_ASSIGN_OR_RETURN(columns_,
                           FormulaColumns::Of(fitted_.formula, options_.weights, schema.header));
    schema.columns = columns_.columns();
    for (const std::string& name : options_.categories) {
      TENON_ASSIGN_OR_RETURN(const int64_t place, FindColumn(schema.header, name));
      for (WantedColumn& column : schema.columns) column.as_text |= column.place == place;
    }
    result_.formula = text;
    result_.response = fitted_.formula.response.label;
    result_.family = NameOf(options_.family);
    result_.link = NameOf(link_);
    result_.level = options_.level;
    for (const TableFile& file : files) result_.files.push_back({file.path, file.size});
    const TableTasks::Options options = {options_.unit_bytes, options_.memory, options_.devices,
                                         options_.make_session};
    TENON_ASSIGN_OR_RETURN(tasks_, TableTasks::Open(std::move(files), std::move(schema), options));
    return OkStatus();
  }

  Status Read() {
    const std::vector<WantedColumn> asked = tasks_->schema().columns;
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
    TENON_RETURN_IF_ERROR(WriteRejects(places));
    num_rows_ = settled.num_rows;
    first_lines_ = settled.first_lines;
    if (settled.num_rejected > 0) {
      result_.warnings.push_back(StrCat("bad records left out: ", settled.num_rejected));
    }
    if (num_rows_ == 0) {
      return InvalidArgument(FilesOfTable(), " has no rows below the header");
    }
    const auto num_columns = static_cast<int64_t>(tasks_->schema().columns.size());
    for (int64_t c = 0; c < num_columns; ++c) {
      kinds_.is_text.push_back(tasks_->IsText(c));
      const int64_t missing = tasks_->NumMissing(c);
      if (missing > 0) result_.missing_by_column.emplace_back(columns_.NameOf(c), missing);
      if (missing == num_rows_) {
        return InvalidArgument(FilesOfTable(), ": column '", columns_.NameOf(c),
                               "' has no values: it is missing in each of ", num_rows_, " rows");
      }
      if (!kinds_.is_text.back()) continue;
      TENON_ASSIGN_OR_RETURN(kinds_.levels[c], tasks_->Levels(c));
      const std::string notice = FactorNotice(columns_.NameOf(c), kinds_.levels[c]);
      if (!asked[c].as_text && !notice.empty()) result_.warnings.push_back(notice);
    }
    return OkStatus();
  }

  std::string FilesOfTable() const {
    const size_t others = tasks_->files().size() - 1;
    return StrCat(
        "'", tasks_->files()[0].path, "'",
        others > 0 ? StrCat(" and ", others, others == 1 ? " other file" : " other files") : "");
  }

  /// The place of the row for which a pass failed; `status` where no row explains it.
  Status ExplainBadRow(const Status& status) {
    if (status.code() != StatusCode::kInvalidArgument) return status;
    const auto bad = tasks_->FindBadRow(fitted_.model->margins());
    if (!bad.ok() || !bad->has_value()) return status;
    const TablePlaces places(tasks_->files(), tasks_->schema(), tasks_->units(), first_lines_);
    return InvalidArgument(BadRowMessage(*fitted_.model, places, **bad));
  }

  Status WriteRejects(const TablePlaces& places) {
    if (options_.rejects_file.empty()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const auto file, RejectsFile::Create(options_.rejects_file, places));
    for (int64_t u = 0; u < static_cast<int64_t>(tasks_->units().size()); ++u) {
      if (tasks_->reports()[u].num_rejected == 0) continue;
      TENON_ASSIGN_OR_RETURN(const auto rejected, tasks_->FindRejected(u));
      TENON_RETURN_IF_ERROR(file->Add(u, rejected));
    }
    return file->Close();
  }

  /// The levels to take out: those without rows, and those that are separated. The second are kept
  /// in `fitted_.separated`.
  StatusOr<std::vector<std::vector<bool>>> LevelsToLeaveOut(const GlmSums& sums) {
    const auto levels = fitted_.model->LevelSumsOf(sums);
    // Levels that are kept are found again in each pass.
    std::erase_if(fitted_.separated, [](const SeparatedLevel& level) { return level.is_kept; });
    std::vector<std::vector<bool>> out(levels.size());
    std::vector<std::string> separated;
    for (size_t v = 0; v < levels.size(); ++v) {
      const bool is_alone = std::any_of(
          fitted_.formula.terms.begin(), fitted_.formula.terms.end(), [&](const FormulaTerm& t) {
            return t.variables == std::vector<int64_t>{static_cast<int64_t>(v)};
          });
      for (size_t l = 0; l < levels[v].rows.size(); ++l) {
        const double rows = levels[v].rows[l], sum = levels[v].responses[l];
        const bool is_separated =
            is_alone && rows > 0 && options_.family != GlmFamily::kGaussian &&
            (sum == 0 || (options_.family == GlmFamily::kBinomial && sum == rows));
        const std::string& name = fitted_.model->variables()[v].levels[l];
        // A penalty keeps their estimates finite, and so do the steps of a stream.
        const bool is_kept = options_.separated == SeparatedLevels::kKeep ||
                             !options_.penalty.is_none() ||
                             (options_.stream && options_.separated == SeparatedLevels::kDrop);
        out[v].push_back(rows == 0 || (is_separated && !is_kept));
        if (!is_separated) continue;
        separated.push_back(StrCat(fitted_.formula.variables[v].label, " = ", name));
        fitted_.separated.push_back({v, name, rows, sum / rows, is_kept});
      }
    }
    if (!separated.empty() && options_.separated == SeparatedLevels::kError) {
      const size_t count = separated.size();
      separated.resize(std::min(count, kShownLevels));
      return InvalidArgument(
          count, count == 1 ? " level has" : " levels have",
          " no finite coefficient, since all its responses are alike: ", Join(separated, ", "),
          "; --separated drop leaves them out with "
          "their rows, --separated keep keeps them");
    }
    return out;
  }

  /// InvalidArgument where all responses are at an end of what the family can have: no coefficient
  /// is finite then.
  Status CheckResponseVaries() const {
    const double sum = fitted_.totals.weighted_response;
    const bool is_end =
        sum == 0 || (options_.family == GlmFamily::kBinomial && sum == fitted_.totals.weight);
    if (options_.family == GlmFamily::kGaussian || !is_end ||
        options_.separated == SeparatedLevels::kKeep) {
      return OkStatus();
    }
    return InvalidArgument("the response '", result_.response, "' is ", sum == 0 ? 0 : 1,
                           " in each of ", static_cast<int64_t>(fitted_.totals.num_rows),
                           " rows: no coefficient is finite; --separated keep fits all the same");
  }

  Status SettleModel() {
    TENON_ASSIGN_OR_RETURN(GlmModel made,
                           GlmModel::Create(fitted_.formula, columns_, kinds_, options_.weights,
                                            options_.family, link_));
    fitted_.model.emplace(std::move(made));
    while (true) {
      const GlmSumsLayout layout(fitted_.model->margins(), GlmPass::kRows);
      const std::vector<double> none(fitted_.model->margins().num_columns());
      const auto passed = Pass(layout, none);
      if (!passed.ok()) return ExplainBadRow(passed.status());
      const std::vector<double>& numbers = *passed;
      fitted_.totals = TotalsOf(numbers);
      if (fitted_.totals.num_infinite > 0) {
        return ExplainBadRow(InvalidArgument("a number of the formula is not finite in ",
                                             fitted_.totals.num_infinite, " rows"));
      }
      if (fitted_.totals.num_rows == 0) {
        return InvalidArgument("no row is left: ", fitted_.totals.num_missing, " of ", num_rows_,
                               " have a missing value, ", fitted_.totals.num_weightless,
                               " have no weight, ", fitted_.totals.num_left_out,
                               " a separated level");
      }
      TENON_RETURN_IF_ERROR(CheckResponseVaries());
      const GlmSums sums(layout, numbers);
      TENON_ASSIGN_OR_RETURN(const auto out, LevelsToLeaveOut(sums));
      const bool any = std::any_of(out.begin(), out.end(), [](const std::vector<bool>& levels) {
        return std::find(levels.begin(), levels.end(), true) != levels.end();
      });
      if (!any) {
        fitted_.level_sums = fitted_.model->LevelSumsOf(sums);
        fitted_.model->Settle(
            sums, fitted_.totals.num_rows,
            options_.stream ? ColumnUnits::kDeviations : ColumnUnits::kPowersOfTwo);
        return OkStatus();
      }
      fitted_.model->LeaveOut(out);
    }
  }

  Status Solve() {
    const GlmSumsFunction pass = PassFunction();
    if (options_.stream) return SolveByStream();
    TENON_ASSIGN_OR_RETURN(fitted_.chosen,
                           ChooseMethod(*fitted_.model, options_.penalty, options_.method));
    if (options_.progress) SetNames();
    const auto progress = [this](int number, double deviance, double gradient,
                                 const Eigen::VectorXd& coefficients) {
      result_.iterations.push_back({number, deviance, gradient, Seconds()});
      if (options_.progress) options_.progress(result_.iterations.back(), PointOf(coefficients));
    };
    if (options_.notice && !fitted_.chosen.notice.empty()) options_.notice(fitted_.chosen.notice);
    if (fitted_.chosen.method == GlmMethod::kLbfgs) return SolveByGradients(pass, progress);
    if (!options_.penalty.is_none()) {
      PenalisedScoringOptions options;
      options.progress = progress;
      if (!options_.start.empty()) options.start = Start();
      TENON_ASSIGN_OR_RETURN(PenalisedFits fits,
                             FitPenalised(*fitted_.model, StartOfIntercept(), fitted_.totals,
                                          options_.penalty, pass, options));
      fitted_.SetPenalised(std::move(fits));
      return OkStatus();
    }
    FisherScoringOptions options;
    options.progress = progress;
    options.null_intercept = StartOfIntercept();
    TENON_ASSIGN_OR_RETURN(fitted_.fit, FitByFisherScoring(*fitted_.model, Start(), pass, options));
    if (options_.robust) {
      LikelihoodPasses passes(*fitted_.model, pass, fitted_.fit.inverse.levels);
      TENON_ASSIGN_OR_RETURN(fitted_.squares, passes.SquaresAt(fitted_.fit.coefficients));
    }
    return OkStatus();
  }

  /// Goes by gradients alone. `progress` is that of QuasiNewtonOptions.
  template <typename Progress>
  Status SolveByGradients(const GlmSumsFunction& pass, const Progress& progress) {
    if (options_.robust) {
      return InvalidArgument("robust standard errors want --method newton, found lbfgs",
                             fitted_.chosen.reason.empty() ? "" : ", which was taken since ",
                             fitted_.chosen.reason);
    }
    double intercept = StartOfIntercept();
    if (fitted_.formula.has_intercept && !fitted_.formula.offsets.empty()) {
      TENON_ASSIGN_OR_RETURN(intercept, NullIntercept());
    }
    QuasiNewtonOptions options;
    options.progress = progress;
    if (!options_.start.empty()) options.start = Start();
    TENON_ASSIGN_OR_RETURN(PenalisedFits fits,
                           FitByQuasiNewton(*fitted_.model, intercept, fitted_.totals,
                                            options_.penalty, pass, options));
    fitted_.SetPenalised(std::move(fits));
    return OkStatus();
  }

  Status SolveByStream() {
    const StreamFitOptions& options = *options_.stream;
    if (options_.progress) SetNames();
    const auto progress = [this](int64_t epoch, double deviance,
                                 const std::vector<double>& coefficients) {
      result_.iterations.push_back({epoch, deviance, kNotGiven, Seconds()});
      const Eigen::Map<const Eigen::VectorXd> at(coefficients.data(),
                                                 static_cast<int64_t>(coefficients.size()));
      if (options_.progress) options_.progress(result_.iterations.back(), PointOf(at));
    };
    if (options.fit != nullptr) {
      fitted_.stream = *options.fit;
    } else {
      const StreamRows rows = {num_rows_, fitted_.totals,
                               fitted_.formula.has_intercept ? StartOfIntercept() : 0};
      TENON_ASSIGN_OR_RETURN(fitted_.stream, FitByStream(*fitted_.model, options_.penalty, rows,
                                                         options, progress, &tasks_));
      if (options.ended) options.ended(*fitted_.stream);
    }
    const std::vector<double>& found = fitted_.stream->coefficients;
    fitted_.fit.coefficients =
        Eigen::Map<const Eigen::VectorXd>(found.data(), static_cast<int64_t>(found.size()));
    const GlmSumsLayout layout(fitted_.model->design(), GlmPass::kDeviance);
    TENON_ASSIGN_OR_RETURN(const std::vector<double> sums, Pass(layout, DesignCoefficients()));
    fitted_.fit.deviance = TotalsOf(sums).deviance;
    return OkStatus();
  }

  /// The coefficients by column of the design.
  std::vector<double> DesignCoefficients() const {
    const GlmDesign& design = fitted_.model->design();
    const GlmSumsLayout layout(design, GlmPass::kDeviance);
    std::vector<double> coefficients(design.num_columns());
    const auto& places = fitted_.model->places();
    for (size_t j = 0; j < places.size(); ++j) {
      coefficients[layout.first_column(places[j].group) + places[j].level] =
          fitted_.fit.coefficients[static_cast<int64_t>(j)];
    }
    return coefficients;
  }

  Status AddMetrics() {
    TENON_ASSIGN_OR_RETURN(const std::vector<double> scores,
                           tasks_->Scores(fitted_.model->design(), DesignCoefficients()));
    GlmMetrics training = MetricsOf(options_.family, scores);
    training.data = "training";
    training.rows_without_prediction = 0;  // these rows are no part of the fit
    result_.metrics.push_back(std::move(training));
    if (options_.evaluation.empty()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(GlmEvaluation evaluation,
                           EvaluateGlm(*result_.equation, options_.evaluation,
                                       {options_.max_rejects, options_.unit_bytes, options_.memory,
                                        tasks_->devices(), options_.make_session}));
    result_.metrics.push_back(std::move(evaluation.metrics));
    if (!evaluation.gaps.empty()) {
      result_.warnings.push_back(StrCat("evaluation: ", evaluation.gaps));
    }
    return OkStatus();
  }

  std::string ColumnName(size_t column) const {
    return NameOfColumn(fitted_.formula, fitted_.model->variables(),
                        fitted_.model->columns()[column]);
  }
  void SetNames() {
    std::vector<std::string> names;
    for (size_t j = 0; j < fitted_.model->columns().size(); ++j) names.push_back(ColumnName(j));
    names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
  }
  GlmPoint PointOf(const Eigen::VectorXd& coefficients) const {
    const Eigen::VectorXd estimates = fitted_.model->ToUnits(coefficients);
    return {names_, {estimates.begin(), estimates.end()}};
  }

  Eigen::VectorXd Start() const {
    const size_t size = fitted_.model->columns().size();
    Eigen::VectorXd start = Eigen::VectorXd::Zero(static_cast<int64_t>(size));
    if (options_.start.empty()) {
      if (fitted_.formula.has_intercept) start[0] = StartOfIntercept();
      return start;
    }
    StringMap<double> values;
    for (size_t i = 0; i < options_.start.values.size(); ++i) {
      values[(*options_.start.names)[i]] = options_.start.values[i];
    }
    for (size_t j = 0; j < size; ++j) {
      const auto found = values.find(ColumnName(j));
      if (found != values.end()) start[static_cast<int64_t>(j)] = found->second;
    }
    return fitted_.model->FromUnits(start);
  }

  /// The predictor of the mean response.
  double PredictorOfMean() const {
    return PredictorOf(link_, fitted_.totals.weighted_response / fitted_.totals.weight);
  }

  /// The same, moved inside where a mean at the edge makes it infinite.
  double StartOfIntercept() const {
    const double predictor = PredictorOfMean();
    if (std::isfinite(predictor)) return predictor;
    const double sum = fitted_.totals.weighted_response, weight = fitted_.totals.weight;
    const bool is_binomial = options_.family == GlmFamily::kBinomial;
    return PredictorOf(link_, is_binomial ? (sum + 0.5) / (weight + 1) : (sum + 0.1) / weight);
  }

  /// The deviance of a model that has an intercept alone, where the formula has one.
  Status FindNullDeviance() {
    std::vector<double> coefficients(fitted_.model->design().num_columns());
    bool was_the_start = (options_.start.empty() || fitted_.penalised) && !fitted_.stream;
    if (fitted_.formula.has_intercept && fitted_.formula.offsets.empty()) {
      const double predictor = PredictorOfMean();
      const bool is_finite = std::isfinite(predictor);
      was_the_start = was_the_start && is_finite;
      coefficients[0] = is_finite ? predictor : std::copysign(kMostPredictor, predictor);
    } else if (fitted_.formula.has_intercept) {
      was_the_start = false;
      TENON_ASSIGN_OR_RETURN(coefficients[0], NullIntercept());
    }
    if (was_the_start) {
      result_.null_deviance = fitted_.fit.start_deviance;
      return OkStatus();
    }
    const GlmSumsLayout deviance(fitted_.model->design(), GlmPass::kDeviance);
    TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers, Pass(deviance, coefficients));
    result_.null_deviance = TotalsOf(numbers).deviance;
    return OkStatus();
  }

  /// The intercept that is best beside the offsets.
  StatusOr<double> NullIntercept() {
    if (null_intercept_) return *null_intercept_;
    TENON_ASSIGN_OR_RETURN(null_intercept_,
                           FindNullIntercept(*fitted_.model, StartOfIntercept(), PassFunction()));
    return *null_intercept_;
  }

  GlmSumsFunction PassFunction() {
    return [this](const GlmSumsLayout& layout, absl::Span<const double> coefficients) {
      return Pass(layout, coefficients);
    };
  }

  const GlmOptions& options_;
  const Clock::Time begin_ = MachineClock().Now();
  const GlmLink link_;
  GlmResult result_;
  FormulaColumns columns_;
  std::unique_ptr<TableTasks> tasks_;
  int64_t num_rows_ = 0;
  std::vector<int64_t> first_lines_;  // by unit
  ColumnKinds kinds_;
  FittedGlm fitted_;
  std::shared_ptr<const std::vector<std::string>> names_;  // of columns, for points
  std::optional<double> null_intercept_;                   // once found
};

}  // namespace

StatusOr<GlmResult> FitGlm(std::string_view formula, const std::vector<std::string>& files,
                           const GlmOptions& options) {
  return Fitter(options).Fit(formula, files);
}

}  // namespace tenon
