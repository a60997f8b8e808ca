// SPDX-License-Identifier: Apache-2.0
#include "data/table/settle_table.h"

#include <algorithm>
#include <optional>

#include "data/table/state_chain.h"

namespace tenon {
namespace {

/// Fewer other values than one in so many of a column make it doubtful.
constexpr int64_t kValuesToOneOther = 1000;

/// Whether the column is one of texts; nothing when it is doubtful.
std::optional<bool> IsText(int64_t column, absl::Span<const UnitReport* const> reports,
                           DoubtfulColumn* doubtful) {
  *doubtful = {column, 0, 0, -1};
  bool has_leading_zeros = false;
  for (size_t u = 0; u < reports.size(); ++u) {
    const ColumnReport& report = reports[u]->columns[column];
    const int64_t values = reports[u]->num_rows - report.num_missing;
    const int64_t others = report.is_text ? values - report.num_numbers : 0;
    doubtful->num_values += values;
    doubtful->num_others += others;
    if (others > 0 && doubtful->unit < 0) doubtful->unit = static_cast<int64_t>(u);
    has_leading_zeros |= report.has_leading_zeros;
  }
  if (doubtful->num_others == 0) return has_leading_zeros;
  if (doubtful->num_others * kValuesToOneOther < doubtful->num_values) return std::nullopt;
  return true;
}

}  // namespace

StatusOr<TableSettlement> SettleTable(const std::vector<TableFile>& files,
                                      const TableSchema& schema,
                                      const std::vector<TableUnit>& units,
                                      absl::Span<const UnitReport* const> reports) {
  TENON_CHECK(units.size() == reports.size(), units.size(), " units have ", reports.size(),
              " reports");
  TableSettlement settled;
  StateChain chain(files, units);
  for (size_t u = 0; u < units.size(); ++u) {
    TENON_ASSIGN_OR_RETURN(const std::optional<TextState> state, chain.Follow(u, *reports[u]));
    settled.first_lines.push_back(chain.first_line());
    settled.num_rows += reports[u]->num_rows;
    settled.num_rejected += reports[u]->num_rejected;
    if (state) settled.again.push_back({static_cast<int64_t>(u), state});
  }
  // Kinds of columns follow from records that are right.
  if (!settled.again.empty()) return settled;
  for (size_t c = 0; c < schema.columns.size(); ++c) {
    const auto column = static_cast<int64_t>(c);
    DoubtfulColumn doubtful;
    const std::optional<bool> is_text =
        schema.columns[c].as_text ? true : IsText(column, reports, &doubtful);
    if (!is_text) settled.doubtful.push_back(doubtful);
    if (is_text.value_or(false)) settled.as_text.push_back(column);
  }
  for (size_t u = 0; u < units.size(); ++u) {
    const auto is_number = [&](int64_t c) { return !reports[u]->columns[c].is_text; };
    if (std::any_of(settled.as_text.begin(), settled.as_text.end(), is_number)) {
      settled.again.push_back({static_cast<int64_t>(u), reports[u]->began});
    }
  }
  return settled;
}

StatusOr<TableSettlement> ReadWholeTable(const std::vector<TableFile>& files,
                                         const std::vector<TableUnit>& units, TableShard* shard,
                                         const FileContext& context) {
  std::vector<TableShard::ReadUnit> to_read;
  std::vector<const UnitReport*> reports;
  for (int64_t u = 0; u < shard->num_units(); ++u) {
    to_read.push_back({u, std::nullopt});
    reports.push_back(&shard->report(u));
  }
  while (true) {
    TENON_RETURN_IF_ERROR(shard->Read(to_read, context));
    TENON_ASSIGN_OR_RETURN(TableSettlement settled,
                           SettleTable(files, shard->schema(), units, reports));
    shard->TakeAsText(settled.as_text);
    if (settled.again.empty()) return settled;
    to_read = std::move(settled.again);
  }
}

}  // namespace tenon
