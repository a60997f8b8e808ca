// SPDX-License-Identifier: Apache-2.0
#include "train/glm/predict/evaluate_glm.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/strings.h"
#include "data/table_places/table_places.h"
#include "train/glm/result/equation_design.h"
#include "train/glm/result/level_finder.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

class Evaluator {
 public:
  Evaluator(const GlmEquation& equation, const EvaluateGlmOptions& options)
      : equation_(equation), options_(options) {}

  StatusOr<GlmEvaluation> Evaluate(const std::vector<std::string>& patterns) {
    TENON_RETURN_IF_ERROR(Open(patterns));
    TENON_RETURN_IF_ERROR(Read());
    TENON_ASSIGN_OR_RETURN(const EquationDesign over, DesignOver(equation_, columns_, kinds_));
    TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers,
                           tasks_->Scores(over.design, over.coefficients));
    GlmEvaluation evaluation = {MetricsOf(equation_.family, numbers), GapsText()};
    evaluation.metrics.data = "evaluation";
    return evaluation;
  }

 private:
  Status Open(const std::vector<std::string>& patterns) {
    TENON_ASSIGN_OR_RETURN(std::vector<TableFile> files, FindTableFiles(patterns));
    TableSchema schema;
    schema.format = equation_.format;
    TENON_ASSIGN_OR_RETURN(schema.header, ReadTableHeader(files, schema.format));
    TENON_ASSIGN_OR_RETURN(columns_, equation_.ColumnsIn(schema.header, /*with_response=*/true));
    schema.columns = columns_.columns();
    const TableTasks::Options options = {options_.unit_bytes, options_.memory, options_.devices,
                                         options_.make_session};
    TENON_ASSIGN_OR_RETURN(tasks_, TableTasks::Open(std::move(files), std::move(schema), options));
    return OkStatus();
  }

  Status Read() {
    const std::vector<WantedColumn> wanted = columns_.columns();
    TENON_ASSIGN_OR_RETURN(const TableSettlement settled, tasks_->Read());
    const TablePlaces places(tasks_->files(), tasks_->schema(), tasks_->units(),
                             settled.first_lines);
    const auto refuse = [&](int64_t unit, int64_t column) -> Status {
      TENON_ASSIGN_OR_RETURN(const std::vector<PlacedText> texts,
                             tasks_->FindTexts(unit, column, 1));
      if (texts.empty()) return OkStatus();
      return InvalidArgument(
          places.OfValue(unit, column, texts[0], "is not a number, which the model wants"));
    };
    for (const DoubtfulColumn& column : settled.doubtful) {
      TENON_RETURN_IF_ERROR(refuse(column.unit, column.column));
    }
    std::vector<const UnitReport*> reports;
    for (const UnitReport& report : tasks_->reports()) reports.push_back(&report);
    TENON_RETURN_IF_ERROR(CheckRejects(places, reports, options_.max_rejects));
    if (settled.num_rows == 0) {
      return InvalidArgument("the table in '", tasks_->files()[0].path, "' has no rows");
    }
    for (int64_t c = 0; c < static_cast<int64_t>(wanted.size()); ++c) {
      kinds_.is_text.push_back(tasks_->IsText(c));
      if (!kinds_.is_text.back()) continue;
      for (size_t u = 0; u < reports.size() && !wanted[c].as_text; ++u) {
        TENON_RETURN_IF_ERROR(refuse(static_cast<int64_t>(u), c));
      }
      TENON_ASSIGN_OR_RETURN(kinds_.levels[c], tasks_->Levels(c));
    }
    return OkStatus();
  }

  std::string GapsText() const {
    std::vector<std::string> parts;
    for (size_t v = 0; v < equation_.variables.size(); ++v) {
      const FormulaVariable& variable = equation_.formula.variables[v];
      if (!equation_.variables[v].is_factor || variable.column.empty()) continue;
      const LevelFinder finder(equation_, static_cast<int64_t>(v));
      for (const bool unseen : {true, false}) {
        int64_t count = 0;
        std::string first;
        for (const std::string& text : kinds_.levels.at(columns_.AsText(variable.column)).texts) {
          const int32_t wanted = unseen ? LevelFinder::kUnseen : LevelFinder::kSeparated;
          if (finder.Of(text) == wanted && count++ == 0) first = text;
        }
        if (count == 0) continue;
        parts.push_back(StrCat(CountText(count), unseen ? " unseen level" : " separated level",
                               count == 1 ? " of " : "s of ", variable.column,
                               unseen ? "" : ", which the fit left out",
                               count == 1 ? " (" : " (first: ", first, ")"));
      }
    }
    for (int64_t c = 0; c < static_cast<int64_t>(kinds_.is_text.size()); ++c) {
      const int64_t missing = tasks_->NumMissing(c);
      if (missing == 0) continue;
      parts.push_back(StrCat(columns_.NameOf(c), " is missing in ", CountText(missing), " rows"));
    }
    return Join(parts, "; ");
  }

  const GlmEquation& equation_;
  const EvaluateGlmOptions& options_;
  FormulaColumns columns_;
  ColumnKinds kinds_;
  std::unique_ptr<TableTasks> tasks_;
};

}  // namespace

GlmMetrics MetricsOf(GlmFamily family, absl::Span<const double> numbers) {
  const GlmScores scores = ScoresOf(numbers);
  GlmMetrics metrics;
  metrics.rows = static_cast<int64_t>(scores.num_rows);
  metrics.rows_without_prediction =
      static_cast<int64_t>(scores.num_missing + scores.num_left_out + scores.num_infinite);
  if (scores.num_rows == 0) return metrics;
  if (family != GlmFamily::kBinomial) {
    metrics.rmse = std::sqrt(scores.square / scores.weight);
    metrics.mae = scores.absolute / scores.weight;
    return metrics;
  }
  LogitHistogram& histogram = metrics.histogram.emplace();
  const auto positives = numbers.begin() + GlmScores::kNumbers;
  histogram.positives.assign(positives, positives + LogitBins::kCount);
  histogram.negatives.assign(positives + LogitBins::kCount, numbers.end());
  const BinaryScores binary = ScoresOf(histogram);
  // These two are sums over rows, not over bins.
  metrics.log_loss = scores.log_loss / scores.weight;
  metrics.brier = scores.square / scores.weight;
  metrics.auc = binary.auc;
  metrics.accuracy = binary.accuracy;
  metrics.precision = binary.precision;
  metrics.recall = binary.recall;
  metrics.calibration_intercept = binary.calibration_intercept;
  metrics.calibration_slope = binary.calibration_slope;
  return metrics;
}

StatusOr<GlmEvaluation> EvaluateGlm(const GlmEquation& equation,
                                    const std::vector<std::string>& files,
                                    const EvaluateGlmOptions& options) {
  return Evaluator(equation, options).Evaluate(files);
}

}  // namespace tenon
