// SPDX-License-Identifier: Apache-2.0
#include "train/glm/rows/table_tasks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/build/building.h"
#include "ops/array/array_ops.h"
#include "ops/glm/design_message.h"
#include "ops/glm/glm_ops.h"
#include "ops/math/math_ops.h"
#include "ops/register.h"
#include "ops/table/table_message.h"
#include "ops/table/table_ops.h"
#include "runtime/session/local_session.h"

namespace tenon {
namespace {

// In the order of GlmPass.
constexpr const char* kPassNames[] = {"deviance", "gradient", "residual", "diagonal",
                                      "rows",     "newton",   "squares"};

/// A table has so many parts, unless these would be smaller or larger than is good: enough for
/// tens of workers to have about as much work each.
constexpr int64_t kUnits = 32;
constexpr int64_t kLeastUnitBytes = int64_t{128} << 10, kMostUnitBytes = int64_t{4} << 20;

/// A mistake of a file without the node that met it, which no user has made; with its device.
Status WithoutNode(const Status& status) {
  constexpr std::string_view kBegin = "node 'TenonTableRead", kEnd = "(TenonTableRead) on ";
  const std::string_view message = Message(status);
  const size_t begin = message.find(kBegin), end = message.find(kEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos) return status;
  const std::string_view rest = message.substr(end + kEnd.size());
  const bool is_here = rest.starts_with("/job:localhost/");
  const size_t text = is_here ? rest.find(": ") + 2 : 0;
  return WithMessage(status, rest.substr(std::min(text, rest.size())));
}

int64_t UnitBytesOf(const std::vector<TableFile>& files) {
  int64_t bytes = 0;
  for (const TableFile& file : files) bytes += file.size;
  return std::clamp(bytes / kUnits, kLeastUnitBytes, kMostUnitBytes);
}

Output TextFeed(const char* name) { return Placeholder(DType::kString, {}, {.name = name}); }

}  // namespace

TableTasks::TableTasks(std::vector<TableFile> files, TableSchema schema,
                       std::vector<TableUnit> units, Options options)
    : options_(std::move(options)),
      files_(std::move(files)),
      schema_(std::move(schema)),
      units_(std::move(units)),
      reports_(units_.size()),
      graph_(AllOps()) {}

StatusOr<std::unique_ptr<TableTasks>> TableTasks::Open(std::vector<TableFile> files,
                                                       TableSchema schema, const Options& options) {
  const std::vector<std::string>& devices = options.devices;
  const int64_t memory = options.memory;
  auto units =
      CutIntoUnits(files, options.unit_bytes > 0 ? options.unit_bytes : UnitBytesOf(files));
  auto tasks = std::unique_ptr<TableTasks>(
      new TableTasks(std::move(files), std::move(schema), std::move(units), options));
  {
    const GraphBuilding building(tasks->graph_);
    tasks->Build(devices);
    TENON_RETURN_IF_ERROR(building.status());
  }
  for (size_t u = 0; u < tasks->units_.size(); ++u) {
    tasks->parts_[u % devices.size()].units.push_back(static_cast<int64_t>(u));
  }
  TENON_ASSIGN_OR_RETURN(tasks->session_, options.make_session ? options.make_session(tasks->graph_)
                                                               : MakeLocalSession(tasks->graph_));
  StepFeeds::Pairs feeds;
  std::vector<std::string> targets;
  for (const Part& part : tasks->parts_) {
    TablePlan plan = {tasks->files_, tasks->schema_, {}, memory};
    for (const int64_t u : part.units) plan.units.push_back(tasks->units_[u]);
    feeds.emplace_back(part.plan.name(), Tensor::Scalar<TString>(SerializeTablePlan(plan)));
    targets.push_back(part.open->name());
  }
  TENON_RETURN_IF_ERROR(tasks->session_->Run(feeds, {}, StepTensors(targets)).status());
  return tasks;
}

void TableTasks::Build(const std::vector<std::string>& devices) {
  {
    const DeviceScope first(devices[0]);
    column_ = Placeholder(DType::kInt64, {}, {.name = "column"});
    most_ = Placeholder(DType::kInt64, {}, {.name = "most"});
    levels_ = Placeholder(DType::kString, {-1}, {.name = "levels"});
    design_ = TextFeed("design");
    coefficients_ = Placeholder(DType::kDouble, {-1}, {.name = "coefficients"});
  }
  std::vector<std::vector<Output>> sums(std::size(kPassNames));
  std::vector<Output> scores;
  for (const std::string& device : devices) {
    const DeviceScope scope(device);
    Part part;
    part.plan = TextFeed("plan");
    part.reading = TextFeed("reading");
    const Output table = TenonTable({.shared_name = "table"});
    part.table = table;
    part.open = TenonTableOpen(table, part.plan);
    part.reports = TenonTableRead(table, part.reading);
    const auto levels = TenonTableLevels(table, column_);
    part.level_texts = levels.texts;
    part.counts = levels.counts;
    part.unit = Placeholder(DType::kInt64, {}, {.name = "unit"});
    const auto found = TenonTableTexts(table, part.unit, column_, most_);
    part.texts = found.texts;
    part.lines = found.lines;
    part.records = found.records;
    part.rejected = TenonTableRejected(table, part.unit);
    part.recode = TenonTableRecode(table, column_, levels_);
    const auto bad = TenonGlmBadRow(table, design_);
    part.bad_row = {bad.place, bad.value, bad.text, bad.record};
    for (size_t p = 0; p < sums.size(); ++p) {
      sums[p].push_back(TenonGlmSums(table, design_, coefficients_, kPassNames[p]));
    }
    scores.push_back(TenonGlmScores(table, design_, coefficients_));
    parts_.push_back(std::move(part));
  }
  const DeviceScope first(devices[0]);
  for (const auto& of_tasks : sums) {
    sums_.push_back(of_tasks.size() == 1 ? of_tasks[0] : AddN(of_tasks));
  }
  scores_ = scores.size() == 1 ? scores[0] : AddN(scores);
}

std::vector<Output> TableTasks::tables() const {
  std::vector<Output> tables;
  for (const Part& part : parts_) tables.push_back(part.table);
  return tables;
}

Status TableTasks::Extend(absl::FunctionRef<void()> build) {
  {
    const GraphBuilding building(graph_);
    build();
    TENON_RETURN_IF_ERROR(building.status());
  }
  return session_->Extend(graph_);
}

StatusOr<std::unique_ptr<TableTasks>> TableTasks::DealTo(std::vector<std::string> devices) const {
  Options options = options_;
  options.devices = std::move(devices);
  TENON_ASSIGN_OR_RETURN(auto tasks, Open(files_, schema_, options));
  TENON_RETURN_IF_ERROR(tasks->Read().status());
  for (size_t c = 0; c < is_text_.size(); ++c) {
    const auto column = static_cast<int64_t>(c);
    if (is_text_[c]) TENON_RETURN_IF_ERROR(tasks->Levels(column).status());
  }
  return tasks;
}

Status TableTasks::ReadUnits(const std::vector<TableShard::ReadUnit>& units) {
  std::map<int64_t, std::optional<TextState>> wanted;
  for (const TableShard::ReadUnit& unit : units) wanted[unit.unit] = unit.state;
  StepFeeds::Pairs feeds;
  std::vector<std::string> fetches;
  std::vector<size_t> readers;
  for (size_t p = 0; p < parts_.size(); ++p) {
    TableReading reading;
    for (size_t c = 0; c < schema_.columns.size(); ++c) {
      if (schema_.columns[c].as_text) reading.as_text.push_back(static_cast<int64_t>(c));
    }
    for (size_t u = 0; u < parts_[p].units.size(); ++u) {
      const auto found = wanted.find(parts_[p].units[u]);
      if (found != wanted.end()) reading.units.push_back({static_cast<int64_t>(u), found->second});
    }
    if (reading.units.empty()) continue;
    feeds.emplace_back(parts_[p].reading.name(),
                       Tensor::Scalar<TString>(SerializeTableReading(reading)));
    fetches.push_back(parts_[p].reports.name());
    readers.push_back(p);
  }
  const auto run = session_->Run(feeds, StepTensors(fetches));
  if (!run.ok()) return WithoutNode(run.status());
  const std::vector<Tensor>& fetched = *run;
  for (size_t i = 0; i < readers.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(auto reports, ParseReports(fetched[i].data<TString>()[0]));
    const Part& part = parts_[readers[i]];
    for (PlacedReport& report : reports) {
      if (report.unit < 0 || report.unit >= static_cast<int64_t>(part.units.size())) {
        return Internal("a task reports on unit ", report.unit, " of ", part.units.size());
      }
      reports_[part.units[report.unit]] = std::move(report.report);
    }
  }
  return OkStatus();
}

StatusOr<TableSettlement> TableTasks::Read() {
  std::vector<TableShard::ReadUnit> units;
  std::vector<const UnitReport*> reports;
  for (size_t u = 0; u < units_.size(); ++u) {
    units.push_back({static_cast<int64_t>(u), std::nullopt});
    reports.push_back(&reports_[u]);
  }
  while (true) {
    TENON_RETURN_IF_ERROR(ReadUnits(units));
    TENON_ASSIGN_OR_RETURN(TableSettlement settled, SettleTable(files_, schema_, units_, reports));
    for (const int64_t column : settled.as_text) schema_.columns[column].as_text = true;
    if (settled.again.empty()) {
      for (const WantedColumn& column : schema_.columns) is_text_.push_back(column.as_text);
      return settled;
    }
    units = std::move(settled.again);
  }
}

int64_t TableTasks::NumMissing(int64_t column) const {
  int64_t missing = 0;
  for (const UnitReport& report : reports_) missing += report.columns[column].num_missing;
  return missing;
}

StatusOr<std::vector<PlacedText>> TableTasks::FindTexts(int64_t unit, int64_t column,
                                                        int64_t most) {
  // Units are dealt in turn.
  const Part& part = parts_[unit % parts_.size()];
  const auto own = static_cast<int64_t>(unit / parts_.size());
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> found,
                         session_->Run({{part.unit, own}, {column_, column}, {most_, most}},
                                       {part.texts, part.lines, part.records}));
  std::vector<PlacedText> texts;
  for (int64_t i = 0; i < found[0].num_elements(); ++i) {
    texts.push_back({std::string(found[0].data<TString>()[i]), found[1].data<int64_t>()[i],
                     std::string(found[2].data<TString>()[i])});
  }
  return texts;
}

StatusOr<std::vector<RejectedRecord>> TableTasks::FindRejected(int64_t unit) {
  const Part& part = parts_[unit % parts_.size()];
  const auto own = static_cast<int64_t>(unit / parts_.size());
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> found,
                         session_->Run({{part.unit, own}}, {part.rejected}));
  TENON_ASSIGN_OR_RETURN(auto reports, ParseReports(found[0].data<TString>()[0]));
  if (reports.size() != 1) return Internal("a task gives ", reports.size(), " reports, wanted 1");
  return std::move(reports[0].report.rejected);
}

StatusOr<TableLevels> TableTasks::Levels(int64_t column) {
  std::vector<std::string> fetches, targets;
  for (const Part& part : parts_) {
    fetches.push_back(part.level_texts.name());
    fetches.push_back(part.counts.name());
    targets.push_back(part.recode->name());
  }
  const Tensor place = Tensor::Scalar(column);
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> fetched,
                         session_->Run({{column_, place}}, StepTensors(fetches)));
  std::vector<ColumnLevels> levels(parts_.size());
  std::vector<const ColumnLevels*> all;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Tensor &texts = fetched[2 * p], &counts = fetched[2 * p + 1];
    for (int64_t i = 0; i < texts.num_elements(); ++i) {
      levels[p].levels.Code(texts.data<TString>()[i]);
      levels[p].counts.push_back(counts.data<int64_t>()[i]);
    }
    all.push_back(&levels[p]);
  }
  TableLevels merged = MergeLevels(all);
  const std::vector<TString> texts(merged.texts.begin(), merged.texts.end());
  TENON_RETURN_IF_ERROR(session_
                            ->Run({{column_, place}, {levels_, Tensor::Vector<TString>(texts)}}, {},
                                  StepTensors(targets))
                            .status());
  return merged;
}

StatusOr<std::optional<PlacedBadRow>> TableTasks::FindBadRow(const GlmDesign& design) {
  std::optional<PlacedBadRow> first;
  for (const Part& part : parts_) {
    TENON_ASSIGN_OR_RETURN(
        const std::vector<Tensor> found,
        session_->Run({{design_, Tensor::Scalar<TString>(SerializeDesign(design))}}, part.bad_row));
    const int64_t* const place = found[0].data<int64_t>();
    if (place[0] < 0 || place[0] >= static_cast<int64_t>(part.units.size()) ||
        place[2] >= static_cast<int64_t>(schema_.columns.size())) {
      continue;
    }
    const int64_t unit = part.units[place[0]];
    if (first && first->unit < unit) continue;
    first = {unit,
             place[2],
             place[3],
             found[1].data<double>()[0],
             {std::string(found[2].data<TString>()[0]), place[1],
              std::string(found[3].data<TString>()[0])}};
  }
  return first;
}

StatusOr<std::vector<double>> TableTasks::Sums(const GlmSumsLayout& layout,
                                               absl::Span<const double> coefficients) {
  const std::vector<double> values(coefficients.begin(), coefficients.end());
  return session_->Run<std::vector<double>>(
      {{design_, Tensor::Scalar<TString>(SerializeDesign(layout.design()))},
       {coefficients_, Tensor::Vector<double>(values)}},
      sums_[static_cast<size_t>(layout.pass())]);
}

StatusOr<std::vector<double>> TableTasks::Scores(const GlmDesign& design,
                                                 absl::Span<const double> coefficients) {
  const std::vector<double> values(coefficients.begin(), coefficients.end());
  return session_->Run<std::vector<double>>(
      {{design_, Tensor::Scalar<TString>(SerializeDesign(design))},
       {coefficients_, Tensor::Vector<double>(values)}},
      scores_);
}

}  // namespace tenon
