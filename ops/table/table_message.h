// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "data/table/table_shard.h"

// The messages of proto/table.proto about tables, as the ops take and give them.

namespace tenon {

/// A table, and the units of it that one task holds.
struct TablePlan {
  std::vector<TableFile> files;
  TableSchema schema;
  std::vector<TableUnit> units;
  int64_t memory = 0;  // bytes that the rows of these units may take in memory; 0: as they need
};

std::string SerializeTablePlan(const TablePlan& plan);
/// InvalidArgument for what is no such message, or where a unit is of no file.
StatusOr<TablePlan> ParseTablePlan(std::string_view message);

/// Units to read, and columns that are texts from then on.
struct TableReading {
  std::vector<TableShard::ReadUnit> units;
  std::vector<int64_t> as_text;
};

std::string SerializeTableReading(const TableReading& reading);
/// InvalidArgument for what is no such message, and for indices that are none.
StatusOr<TableReading> ParseTableReading(std::string_view message, int64_t num_units,
                                         int64_t num_columns);

struct PlacedReport {
  int64_t unit;
  UnitReport report;
};

std::string SerializeReports(const TableShard& shard, const TableReading& reading);
StatusOr<std::vector<PlacedReport>> ParseReports(std::string_view message);

/// A message Reports with one report, which has these records and nothing else.
std::string SerializeRejected(const std::vector<RejectedRecord>& rejected);

}  // namespace tenon
