// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/build/operand.h"
#include "core/graph/graph.h"
#include "data/table/merge_levels.h"
#include "data/table/settle_table.h"
#include "data/table/unit_report.h"
#include "ops/glm/glm_sums.h"
#include "runtime/session/session.h"

namespace tenon {

/// A row that no model of a design can have, as ops/glm/bad_row.h finds it.
struct PlacedBadRow {
  int64_t unit;    // of the table
  int64_t column;  // of the schema; -1: none
  int64_t part;    // which number of the design is wrong
  double value;
  PlacedText text;  // of the column
};

/// A table whose units are dealt to the tasks of a session. One graph has the part of each task in
/// its device scope; the sums of tasks are added on the first one, in their order. Used by one
/// thread at a time.
class TableTasks {
 public:
  /// Opens a session on a graph.
  using SessionMaker = std::function<StatusOr<std::unique_ptr<Session>>(const Graph& graph)>;

  struct Options {
    /// The size of a part that is read by itself; 0: by the size of the whole, whatever reads it.
    int64_t unit_bytes = 0;
    /// Bytes that the rows may take in each task, without those that are read again; 0: as they
    /// need.
    int64_t memory = 0;
    /// A CPU device of each task ("/job:worker/task:0"; "" for where the session is).
    std::vector<std::string> devices = {""};
    SessionMaker make_session = nullptr;  // null: in this process
  };

  /// Cuts the files into units and deals them to the devices in turn.
  static StatusOr<std::unique_ptr<TableTasks>> Open(std::vector<TableFile> files,
                                                    TableSchema schema, const Options& options);

  const std::vector<TableFile>& files() const { return files_; }
  const TableSchema& schema() const { return schema_; }
  const std::vector<TableUnit>& units() const { return units_; }
  /// The reports on all units. REQUIRES: Read.
  const std::vector<UnitReport>& reports() const { return reports_; }

  /// The devices of the tasks, and the table of each in the graph.
  const std::vector<std::string>& devices() const { return options_.devices; }
  std::vector<Output> tables() const;
  Session& session() { return *session_; }
  /// Adds to the graph, and so to the session, what `build` does.
  Status Extend(absl::FunctionRef<void()> build);
  /// The same table, read and coded as here, dealt to other devices in a session of their own.
  /// REQUIRES: Read, and Levels of all columns of texts.
  StatusOr<std::unique_ptr<TableTasks>> DealTo(std::vector<std::string> devices) const;

  /// Reads all units, again where they were begun in a wrong state or columns turned out to be of
  /// texts, until they are of one table.
  StatusOr<TableSettlement> Read();
  /// Whether a column of the schema is of texts. REQUIRES: Read.
  bool IsText(int64_t column) const { return is_text_[column]; }
  /// The missing values of a column, in all rows. REQUIRES: Read.
  int64_t NumMissing(int64_t column) const;
  /// The first values of a column in a unit that are neither numbers nor missing.
  StatusOr<std::vector<PlacedText>> FindTexts(int64_t unit, int64_t column, int64_t most);
  /// All records of a unit that were left out.
  StatusOr<std::vector<RejectedRecord>> FindRejected(int64_t unit);
  /// The levels of a column of texts over all tasks, by which its values are coded afterwards.
  /// Called once for each column.
  StatusOr<TableLevels> Levels(int64_t column);
  /// The first row that no model of a design can have.
  StatusOr<std::optional<PlacedBadRow>> FindBadRow(const GlmDesign& design);
  /// Makes a pass over all rows. `layout` is of a design over the schema's columns.
  StatusOr<std::vector<double>> Sums(const GlmSumsLayout& layout,
                                     absl::Span<const double> coefficients);
  /// The scores of all rows (AddGlmScores). `design` is over the schema's columns.
  StatusOr<std::vector<double>> Scores(const GlmDesign& design,
                                       absl::Span<const double> coefficients);

 private:
  /// The nodes of a task.
  struct Part {
    std::vector<int64_t> units;  // of the table
    Output table, plan, reading, reports, level_texts, counts;
    Output unit, texts, lines, records, rejected;
    std::vector<Output> bad_row;
    Node *open, *recode;
  };
  TableTasks(std::vector<TableFile> files, TableSchema schema, std::vector<TableUnit> units,
             Options options);
  void Build(const std::vector<std::string>& devices);
  /// Has each task read some of the table's units.
  Status ReadUnits(const std::vector<TableShard::ReadUnit>& units);

  const Options options_;
  const std::vector<TableFile> files_;
  TableSchema schema_;
  const std::vector<TableUnit> units_;
  std::vector<UnitReport> reports_;  // by unit
  std::vector<bool> is_text_;        // by column
  Graph graph_;
  std::vector<Part> parts_;
  Output column_, most_, levels_, design_, coefficients_;
  std::vector<Output> sums_;  // by GlmPass
  Output scores_;
  std::unique_ptr<Session> session_;
};

}  // namespace tenon
