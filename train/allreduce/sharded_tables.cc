// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/sharded_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "core/base/hash_map.h"
#include "core/base/plural.h"
#include "core/base/strings.h"
#include "data/files/file.h"
#include "train/allreduce/rank_values.h"

namespace tenon {
namespace {

/// Rows that are read at once.
constexpr int64_t kRowsAtOnce = 8192;
/// The name of the column of line numbers, which no file can have.
constexpr char kLine[] = "\n";

/// A row of a file.
struct Place {
  int64_t shard = 0, line = 0;
};

/// A table of one shard, as its file has it.
struct ShardTable {
  std::vector<std::string> ids;
  std::vector<int64_t> lines;
  std::vector<float> values;  // row after row
  StringViewMap<int64_t> row_of;
};

Status CheckSchema(const ShardedTablesOptions& options) {
  const auto is_master = [](const ShardedTable& t) {
    return t.kind == ShardedTable::Kind::kMaster;
  };
  const auto masters = std::count_if(options.tables.begin(), options.tables.end(), is_master);
  if (masters != 1) return InvalidArgument("found ", masters, " master tables, wanted one");
  for (const ShardedTable& table : options.tables) {
    if (table.dtype != DType::kFloat && table.dtype != DType::kBool) {
      return InvalidArgument("the columns of ", table.file, " are ", ToString(table.dtype),
                             ", wanted float or bool");
    }
    if (std::find(table.columns.begin(), table.columns.end(), options.id) != table.columns.end()) {
      return InvalidArgument("column '", options.id, "' of ", table.file,
                             " has the IDs and cannot be one of numbers");
    }
  }
  return OkStatus();
}

StatusOr<std::vector<std::string>> FindShards(const std::string& folder) {
  TENON_ASSIGN_OR_RETURN(std::vector<std::string> names, ListFolder(folder));
  std::erase_if(names, [&](const std::string& name) {
    return name.starts_with(".") || !IsFolder(JoinPath(folder, name));
  });
  if (names.empty()) return NotFound("'", folder, "' has no folders, wanted one for each shard");
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> ShareOf(const std::vector<std::string>& shards, int rank, int size,
                                 ShardPartition partition) {
  if (partition == ShardPartition::kOwn) return shards;
  std::vector<std::string> share;
  const auto count = static_cast<int64_t>(shards.size());
  const int64_t each = count / size, more = count % size;
  for (int64_t i = 0; i < count; ++i) {
    // The first `more` ranks have `each` + 1 shards, and so the first `more` * (`each` + 1) ones.
    const int64_t successive =
        i < more * (each + 1) ? i / (each + 1) : more + (i - more * (each + 1)) / each;
    const int64_t owner = partition == ShardPartition::kMod ? i % size : successive;
    if (owner == rank) share.push_back(shards[static_cast<size_t>(i)]);
  }
  return share;
}

class TableReader {
 public:
  TableReader(Communicator& ranks, const std::string& folder, const ShardedTablesOptions& options)
      : ranks_(ranks), folder_(folder), options_(options), tables_(options.tables.size()) {}

  StatusOr<std::vector<DistributedTable>> Read() {
    TENON_RETURN_IF_ERROR(OkOnAllRanks(ranks_, "schema", CheckSchema(options_)));
    const auto shards = FindShards(folder_);
    TENON_RETURN_IF_ERROR(OkOnAllRanks(ranks_, "folder", shards.status()));
    if (options_.partition != ShardPartition::kOwn) TENON_RETURN_IF_ERROR(CompareShards(*shards));
    shards_ = ShareOf(*shards, ranks_.rank(), ranks_.size(), options_.partition);
    TENON_RETURN_IF_ERROR(OkOnAllRanks(ranks_, "share", CheckShare(shards->size())));
    TENON_RETURN_IF_ERROR(ShareColumns());
    TENON_RETURN_IF_ERROR(OkOnAllRanks(ranks_, "reading", ReadShards()));
    TENON_RETURN_IF_ERROR(CompareIds());
    for (size_t t = 0; t < tables_.size(); ++t) TENON_RETURN_IF_ERROR(Finish(t));
    return std::move(tables_);
  }

 private:
  std::string PathOf(size_t shard, size_t table) const {
    return JoinPath(JoinPath(folder_, shards_[shard]), options_.tables[table].file);
  }
  std::string Shown(const Place& place, size_t table) const {
    return StrCat("'", PathOf(static_cast<size_t>(place.shard), table), "', line ", place.line);
  }

  Status CompareShards(const std::vector<std::string>& shards) {
    TENON_ASSIGN_OR_RETURN(const auto all, GatherTexts(ranks_, "shards", shards));
    Status same;
    if (shards != all[0]) {
      const auto at = std::mismatch(shards.begin(), shards.end(), all[0].begin(), all[0].end());
      const auto shown = [](auto name, auto end) {
        return name == end ? std::string("none there") : StrCat("'", *name, "'");
      };
      same = FailedPrecondition(
          "'", folder_, "' has ", Plural(static_cast<int64_t>(shards.size()), "shard"), ", and ",
          all[0].size(), " on rank 0; the first that differs is ", shown(at.first, shards.end()),
          " here and ", shown(at.second, all[0].end()),
          " on rank 0; wanted one folder that all ranks see");
    }
    return OkOnAllRanks(ranks_, "same shards", same);
  }

  Status CheckShare(size_t shards) const {
    if (!shards_.empty()) return OkStatus();
    return FailedPrecondition("no shard is left for it: '", folder_, "' has ", shards,
                              " and there are ", ranks_.size(),
                              " ranks; wanted at least one for each");
  }

  /// Has all ranks read the same columns.
  Status ShareColumns() {
    for (size_t t = 0; t < tables_.size(); ++t) {
      const ShardedTable& schema = options_.tables[t];
      std::vector<std::string>& columns = tables_[t].columns;
      columns = schema.columns;
      if (!columns.empty()) continue;
      Status status;
      if (ranks_.rank() == 0) {
        auto names = ReadCsvNames(PathOf(0, t), schema.reader);
        status = names.status();
        if (names.ok()) {
          std::erase(*names, options_.id);
          columns = *std::move(names);
          if (columns.empty()) {
            status = NotFound("'", PathOf(0, t), "' has no column beside '", options_.id, "'");
          }
        }
      }
      TENON_RETURN_IF_ERROR(OkOnAllRanks(ranks_, "columns", status));
      TENON_ASSIGN_OR_RETURN(auto all, GatherTexts(ranks_, schema.file, columns));
      columns = std::move(all[0]);
    }
    return OkStatus();
  }

  Status ReadShards() {
    values_.resize(tables_.size());
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      std::vector<ShardTable> tables;
      for (size_t t = 0; t < tables_.size(); ++t) {
        TENON_ASSIGN_OR_RETURN(ShardTable table, ReadFile(shard, t));
        tables.push_back(std::move(table));
      }
      TENON_RETURN_IF_ERROR(AddJoined(shard, tables));
    }
    if (!ids_.empty()) return OkStatus();
    return FailedPrecondition("it has no rows: there is none in '",
                              options_.tables[MasterTable()].file, "' of its ",
                              Plural(static_cast<int64_t>(shards_.size()), "shard"),
                              ", the first of which is '", JoinPath(folder_, shards_[0]), "'");
  }

  StatusOr<ShardTable> ReadFile(size_t shard, size_t t) const {
    const ShardedTable& schema = options_.tables[t];
    std::vector<CsvColumn> columns = {{.name = options_.id, .dtype = DType::kString}};
    for (const std::string& name : tables_[t].columns) {
      columns.push_back({.name = name, .dtype = schema.dtype});
    }
    CsvOptions reader = schema.reader;
    reader.line_column = kLine;
    TENON_ASSIGN_OR_RETURN(const BatchSourcePtr source,
                           ReadCsv({PathOf(shard, t)}, std::move(columns), reader));
    ShardTable table;
    RowBatch batch;
    while (true) {
      TENON_ASSIGN_OR_RETURN(const bool is_there, source->Next(kRowsAtOnce, &batch));
      if (!is_there) break;
      TENON_RETURN_IF_ERROR(AddRows(batch, static_cast<int64_t>(shard), t, &table));
    }
    for (size_t row = 0; row < table.ids.size(); ++row) {
      const auto [first, is_new] = table.row_of.emplace(table.ids[row], static_cast<int64_t>(row));
      if (is_new) continue;
      const int64_t line = table.lines[static_cast<size_t>(first->second)];
      return InvalidArgument(Shown({static_cast<int64_t>(shard), table.lines[row]}, t), ": ID '",
                             table.ids[row], "' is that of line ", line, ", too");
    }
    return table;
  }

  /// Adds rows of a file to what was read of it.
  Status AddRows(const RowBatch& batch, int64_t shard, size_t t, ShardTable* table) const {
    const size_t count = tables_[t].columns.size();
    const int64_t rows = batch.num_rows();
    const auto* const lines = batch.columns.back().data<int64_t>();
    const auto* const ids = batch.columns[0].data<TString>();
    const size_t begin = table->values.size();
    table->values.resize(begin + static_cast<size_t>(rows) * count);
    for (int64_t row = 0; row < rows; ++row) {
      const Place place{shard, lines[row]};
      table->lines.push_back(lines[row]);
      table->ids.emplace_back(std::string_view(ids[row]));
      if (table->ids.back().empty()) {
        return InvalidArgument(Shown(place, t), ": column '", options_.id,
                               "': found no value, wanted an ID");
      }
      float* const values = table->values.data() + begin + static_cast<size_t>(row) * count;
      for (size_t c = 0; c < count; ++c) {
        const Tensor& column = batch.columns[c + 1];
        const bool is_bool = column.dtype() == DType::kBool;
        values[c] =
            is_bool ? static_cast<float>(column.data<bool>()[row]) : column.data<float>()[row];
        if (std::isfinite(values[c])) continue;
        return InvalidArgument(Shown(place, t), ": column '", tables_[t].columns[c], "': found ",
                               values[c], ", wanted a finite number");
      }
    }
    return OkStatus();
  }

  /// Adds the rows of a shard, in the order of its master.
  Status AddJoined(size_t shard, const std::vector<ShardTable>& tables) {
    const size_t m = MasterTable();
    const ShardTable& master = tables[m];
    for (size_t row = 0; row < master.ids.size(); ++row) {
      const Place place{static_cast<int64_t>(shard), master.lines[row]};
      const auto [first, is_new] = row_of_.emplace(master.ids[row], ids_.size());
      if (!is_new) {
        return InvalidArgument(Shown(place, m), ": ID '", master.ids[row], "' is that of ",
                               Shown(places_[first->second], m), ", too");
      }
      ids_.push_back(master.ids[row]);
      places_.push_back(place);
      for (size_t t = 0; t < tables.size(); ++t) {
        const auto found = tables[t].row_of.find(master.ids[row]);
        if (found == tables[t].row_of.end()) {
          return InvalidArgument(Shown(place, m), ": ID '", master.ids[row], "' has no row in '",
                                 PathOf(shard, t), "'");
        }
        const size_t count = tables_[t].columns.size();
        const float* const values =
            tables[t].values.data() + static_cast<size_t>(found->second) * count;
        values_[t].insert(values_[t].end(), values, values + count);
      }
    }
    return OkStatus();
  }

  size_t MasterTable() const {
    size_t t = 0;
    while (options_.tables[t].kind != ShardedTable::Kind::kMaster) ++t;
    return t;
  }

  /// Refuses an ID that a rank before this one has, too.
  Status CompareIds() {
    TENON_ASSIGN_OR_RETURN(const auto all, GatherTexts(ranks_, "IDs", ids_));
    Status status;
    for (int rank = 0; status.ok() && rank < ranks_.rank(); ++rank) {
      for (const std::string& id : all[static_cast<size_t>(rank)]) {
        const auto own = row_of_.find(id);
        if (own == row_of_.end()) continue;
        status = InvalidArgument(Shown(places_[own->second], MasterTable()), ": ID '", id,
                                 "' is that of a row of rank ", rank, ", too");
        break;
      }
    }
    return OkOnAllRanks(ranks_, "equal IDs", status);
  }

  /// Makes a table of the values that were read, and of what the others have.
  Status Finish(size_t t) {
    DistributedTable& table = tables_[t];
    const auto columns = static_cast<int64_t>(table.columns.size());
    const auto rows = static_cast<int64_t>(ids_.size());
    table.rows = Tensor::Of<float>({rows, columns}, absl::MakeConstSpan(values_[t]));
    if (!table.rows.valid()) return table.rows.mistake();
    table.min.assign(static_cast<size_t>(columns), std::numeric_limits<float>::infinity());
    table.max.assign(static_cast<size_t>(columns), -std::numeric_limits<float>::infinity());
    for (size_t i = 0; i < values_[t].size(); ++i) {
      const size_t c = i % table.columns.size();
      table.min[c] = std::min(table.min[c], values_[t][i]);
      table.max[c] = std::max(table.max[c], values_[t][i]);
    }
    for (const auto& [ends, reduction] :
         {std::pair(&table.min, Reduction::kMin), std::pair(&table.max, Reduction::kMax)}) {
      TENON_ASSIGN_OR_RETURN(const Tensor all, ReduceOverRanks(ranks_, options_.tables[t].file,
                                                               Tensor::Vector(*ends), reduction));
      std::copy_n(all.data<float>(), columns, ends->data());
    }
    const Tensor own = Tensor::Of<int64_t>({1, 2}, {rows, static_cast<int64_t>(shards_.size())});
    TENON_ASSIGN_OR_RETURN(const Tensor sizes, GatherRows(ranks_, "sizes", own));
    for (int64_t rank = 0; rank < sizes.dim(0); ++rank) {
      table.rows_of_ranks.push_back(sizes.data<int64_t>()[2 * rank]);
      table.shards_of_ranks.push_back(sizes.data<int64_t>()[2 * rank + 1]);
    }
    return OkStatus();
  }

  Communicator& ranks_;
  const std::string& folder_;
  const ShardedTablesOptions& options_;
  std::vector<std::string> shards_;  // this rank's
  std::vector<DistributedTable> tables_;
  std::vector<std::vector<float>> values_;  // of each table, row after row
  std::vector<std::string> ids_;            // of the rows
  std::vector<Place> places_;               // of them in the master's files
  StringMap<size_t> row_of_;
};

}  // namespace

StatusOr<std::vector<DistributedTable>> ReadShardedTables(Communicator& ranks,
                                                          const std::string& folder,
                                                          const ShardedTablesOptions& options) {
  return TableReader(ranks, folder, options).Read();
}

}  // namespace tenon
