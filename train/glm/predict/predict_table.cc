// SPDX-License-Identifier: Apache-2.0
#include "train/glm/predict/predict_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

#include "core/base/parallel.h"
#include "core/base/strings.h"
#include "data/csv/read_number.h"
#include "data/table/state_chain.h"
#include "data/table/unit_reader.h"
#include "data/table_places/table_places.h"
#include "train/glm/predict/row_predictor.h"
#include "train/glm/text/csv_field.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

using Type = PredictTableOptions::Type;

/// A guess of the time in which a byte is read, predicted and written.
constexpr double kNsOfPredictedByte = 10;
/// Units for each thread that are predicted before any of them is written.
constexpr int64_t kUnitsOfThread = 4;

void AppendNumber(double value, std::string* out) {
  char buffer[32];
  out->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

/// The derivative of a mean by its linear predictor.
double SlopeOf(GlmLink link, double predictor, double mean) {
  switch (link) {
    case GlmLink::kIdentity:
      return 1;
    case GlmLink::kLog:
      return mean;
    case GlmLink::kLogit:
      return mean * (1 - mean);
    case GlmLink::kProbit:
      return std::exp(-0.5 * predictor * predictor) / std::sqrt(2 * std::numbers::pi);
    case GlmLink::kCloglog:
      return std::exp(predictor - std::exp(predictor));
  }
  return 1;
}

/// A unit that was predicted.
struct PredictedUnit {
  std::string text;  // lines, unless they were written at once
  PredictionGaps gaps;
  UnitReport report;
  struct Mistake {
    int64_t column;  // of those that are wanted
    PlacedText text;
  };
  std::optional<Mistake> mistake;  // the first one; the unit ends there
};

class TablePredictor {
 public:
  TablePredictor(const PredictTableOptions& options,
                 absl::FunctionRef<Status(std::string_view)> write, const FileContext& context)
      : options_(options), write_(write), context_(context) {}

  StatusOr<PredictedTable> Predict(const GlmEquation& equation,
                                   const std::vector<std::string>& patterns) {
    TENON_RETURN_IF_ERROR(Open(equation, patterns));
    TENON_RETURN_IF_ERROR(write_(Header()));
    StateChain chain(files_, units_);
    for (size_t next = 0; next < units_.size();) {
      const size_t end = EndOfBatch(next);
      std::vector<StatusOr<PredictedUnit>> batch(end - next, Internal("no unit"));
      const double bytes = static_cast<double>(options_.unit_bytes);
      if (IsCompressed(next)) {
        batch[0] = PredictUnit(next, std::nullopt, write_);
      } else {
        ParallelFor(static_cast<int64_t>(batch.size()), kNsOfPredictedByte * bytes,
                    [&](int64_t from, int64_t to) {
                      for (int64_t i = from; i < to; ++i) {
                        batch[i] = PredictToText(next + static_cast<size_t>(i), std::nullopt);
                      }
                    });
      }
      for (StatusOr<PredictedUnit>& unit : batch) {
        TENON_RETURN_IF_ERROR(unit.status());
        TENON_RETURN_IF_ERROR(Finish(next++, *std::move(unit), &chain));
      }
    }
    return std::move(table_);
  }

 private:
  Status Open(const GlmEquation& equation, const std::vector<std::string>& patterns) {
    TENON_ASSIGN_OR_RETURN(files_, FindTableFiles(patterns, context_));
    schema_.format = equation.format;
    TENON_ASSIGN_OR_RETURN(schema_.header, ReadTableHeader(files_, schema_.format, context_));
    TENON_ASSIGN_OR_RETURN(RowPredictor made,
                           RowPredictor::Create(equation, schema_.header, options_.covariance));
    predictor_ = std::make_unique<RowPredictor>(std::move(made));
    schema_.columns = predictor_->wanted();
    for (const std::string& name : options_.keep) {
      TENON_ASSIGN_OR_RETURN(const int64_t place, FindColumn(schema_.header, name));
      kept_.push_back(place);
    }
    units_ = CutIntoUnits(files_, options_.unit_bytes);
    table_.num_files = static_cast<int64_t>(files_.size());
    table_.num_aliased = std::count(equation.is_aliased.begin(), equation.is_aliased.end(), true);
    const auto& levels = equation.response_levels;
    classes_[0] = levels.empty() ? "0" : CsvField(levels[0]);
    classes_[1] = levels.empty() ? "1" : CsvField(levels[1]);
    return OkStatus();
  }

  bool has_errors() const { return !options_.covariance.empty(); }
  bool IsCompressed(size_t unit) const { return files_[units_[unit].file].compressed; }

  /// The units that are predicted at once, of which a compressed one, which may be of any length,
  /// is written as it is read.
  size_t EndOfBatch(size_t begin) const {
    if (IsCompressed(begin)) return begin + 1;
    const size_t most = begin + static_cast<size_t>(kUnitsOfThread * ThreadBudget());
    size_t end = begin;
    while (end < std::min(most, units_.size()) && !IsCompressed(end)) ++end;
    return end;
  }

  std::string Header() const {
    std::string header;
    for (const std::string& name : options_.keep) StrAppend(&header, CsvField(name), ",");
    return StrCat(header, "prediction", has_errors() ? ",se\n" : "\n");
  }

  /// Takes a predicted unit, again where it began in another state, and writes its lines.
  Status Finish(size_t u, PredictedUnit unit, StateChain* chain) {
    TENON_ASSIGN_OR_RETURN(const std::optional<TextState> state, chain->Follow(u, unit.report));
    if (state) {
      TENON_ASSIGN_OR_RETURN(unit, PredictToText(u, state));
    }
    first_lines_.push_back(chain->first_line());
    const TablePlaces places(files_, schema_, units_, first_lines_);
    const auto place = static_cast<int64_t>(u);
    if (unit.mistake) {
      return InvalidArgument(places.OfValue(place, unit.mistake->column, unit.mistake->text,
                                            "is not a number, which the model wants"));
    }
    table_.num_rows += unit.report.num_rows;
    table_.num_rejected += unit.report.num_rejected;
    table_.gaps.Add(unit.gaps, places.File(place), first_lines_.back());
    reports_.push_back(std::move(unit.report));
    if (table_.num_rejected > options_.max_rejects) {
      std::vector<const UnitReport*> reports;
      for (const UnitReport& report : reports_) reports.push_back(&report);
      TENON_RETURN_IF_ERROR(CheckRejects(places, reports, options_.max_rejects));
    }
    return unit.text.empty() ? OkStatus() : write_(unit.text);
  }

  StatusOr<PredictedUnit> PredictToText(size_t u, std::optional<TextState> state) const {
    std::string text;
    TENON_ASSIGN_OR_RETURN(PredictedUnit unit, PredictUnit(u, state, [&](std::string_view more) {
                             text += more;
                             return OkStatus();
                           }));
    unit.text = std::move(text);
    return unit;
  }

  StatusOr<PredictedUnit> PredictUnit(size_t u, std::optional<TextState> state,
                                      absl::FunctionRef<Status(std::string_view)> write) const {
    const TableUnit& where = units_[u];
    TENON_ASSIGN_OR_RETURN(const auto reader,
                           UnitReader::Open(files_[where.file], where, state, schema_, context_));
    reader->KeepRecords();
    PredictedUnit unit;
    unit.report.began = reader->state();
    TablePart part;
    RowPredictor::KnownCodes known;
    PredictedRows rows;
    std::string lines;
    while (!unit.mistake) {
      TENON_RETURN_IF_ERROR(context_.CheckCancelled());
      TENON_ASSIGN_OR_RETURN(const bool found, reader->Next(&part));
      if (!found) break;
      FindMistake(part, reader.get(), &unit);
      if (unit.mistake) break;
      unit.report.num_rows += part.num_rows;
      predictor_->Predict(part, &known, &rows);
      CountGaps(rows, reader.get(), &unit.gaps);
      lines.clear();
      AppendLines(reader->records(), &rows, &lines);
      TENON_RETURN_IF_ERROR(write(lines));
    }
    unit.report.scan = reader->scan();
    unit.report.num_rejected = reader->num_rejected();
    unit.report.rejected = reader->rejected();
    return unit;
  }

  /// Finds the first text of a part in a column that should be of numbers.
  void FindMistake(const TablePart& part, UnitReader* reader, PredictedUnit* unit) const {
    for (size_t c = 0; c < part.columns.size(); ++c) {
      if (!part.columns[c].is_text || schema_.columns[c].as_text) continue;
      std::string unquoted;
      double number;
      for (int64_t i = 0; i < part.num_rows; ++i) {
        const std::string_view text = FieldText(
            reader->records().Field(i, schema_.columns[c].place), schema_.format.quotes, &unquoted);
        if (IsMissing(text, schema_.format) || ReadFieldNumber(text, &number)) continue;
        const std::string_view record = reader->records().Record(i);
        unit->mistake = {static_cast<int64_t>(c),
                         {std::string(text), reader->LinesBefore(i),
                          std::string(record.substr(0, RejectedRecord::kShownBytes))}};
        return;
      }
    }
  }

  static void CountGaps(const PredictedRows& rows, UnitReader* reader, PredictionGaps* gaps) {
    int64_t last = -1, line = 0;
    for (const PredictedRows::Gap& gap : rows.gaps) {
      if (gap.row != last) {
        gaps->AddRow();
        line = reader->LinesBefore(gap.row);
        last = gap.row;
      }
      gaps->Add(gap.kind, gap.name, gap.text, line);
    }
  }

  /// The field of a kept column as the output has it: as it stands in the file, if that has the
  /// same delimiter.
  void AppendField(std::string_view field, std::string* lines) const {
    if (schema_.format.delimiter == ',' && schema_.format.quotes) {
      *lines += field;
      return;
    }
    std::string unquoted;
    *lines += CsvField(FieldText(field, schema_.format.quotes, &unquoted));
  }

  void AppendLines(const RecordCutter& records, PredictedRows* rows, std::string* lines) const {
    const GlmLink link = predictor_->equation().link;
    std::vector<double> means = rows->predictor;
    MeansOf(link, static_cast<int64_t>(means.size()), means.data(), means.data());
    for (size_t i = 0; i < means.size(); ++i) {
      for (const int64_t place : kept_) {
        AppendField(records.Field(static_cast<int64_t>(i), place), lines);
        *lines += ',';
      }
      const double predictor = rows->predictor[i];
      if (std::isnan(predictor)) {
        // A line of nothing would be passed over where it is read.
        *lines += kept_.empty() && !has_errors() ? "\"\"\n" : has_errors() ? ",\n" : "\n";
        continue;
      }
      if (options_.type == Type::kClass) {
        *lines += classes_[means[i] >= options_.threshold ? 1 : 0];
      } else {
        AppendNumber(options_.type == Type::kLink ? predictor : means[i], lines);
      }
      if (has_errors()) {
        const double slope = options_.type == Type::kLink ? 1 : SlopeOf(link, predictor, means[i]);
        *lines += ',';
        AppendNumber(rows->standard_errors[i] * std::abs(slope), lines);
      }
      *lines += '\n';
    }
  }

  const PredictTableOptions& options_;
  const absl::FunctionRef<Status(std::string_view)> write_;
  const FileContext& context_;
  std::vector<TableFile> files_;
  std::vector<TableUnit> units_;
  TableSchema schema_;
  std::unique_ptr<RowPredictor> predictor_;
  std::vector<int64_t> kept_;  // places in a record
  std::string classes_[2];
  std::vector<int64_t> first_lines_;  // of the units so far, and their reports
  std::vector<UnitReport> reports_;
  PredictedTable table_;
};

}  // namespace

std::string PredictedTable::Text() const {
  std::string text = StrCat(CountText(num_rows), num_rows == 1 ? " row" : " rows");
  if (gaps.num_rows() > 0) {
    StrAppend(&text, "; ", CountText(gaps.num_rows()),
              " without prediction: ", gaps.Text(num_files > 1));
  }
  if (num_rejected > 0) {
    StrAppend(&text, "; ", CountText(num_rejected),
              num_rejected == 1 ? " bad record was left out" : " bad records were left out");
  }
  if (num_aliased > 0) {
    StrAppend(
        &text, "; ", CountText(num_aliased),
        num_aliased == 1 ? " aliased coefficient counts as 0" : " aliased coefficients count as 0");
  }
  return text;
}

StatusOr<PredictedTable> PredictTable(const GlmEquation& equation,
                                      const std::vector<std::string>& files,
                                      const PredictTableOptions& options,
                                      absl::FunctionRef<Status(std::string_view)> write,
                                      const FileContext& context) {
  if (options.type == Type::kClass) {
    if (equation.family != GlmFamily::kBinomial) {
      return InvalidArgument("a model of family ", NameOf(equation.family), " has no classes");
    }
    if (!options.covariance.empty()) {
      return InvalidArgument("a class has no standard error");
    }
  }
  return TablePredictor(options, write, context).Predict(equation, files);
}

}  // namespace tenon
