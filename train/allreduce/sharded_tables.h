// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/device/communicator.h"
#include "core/tensor/tensor.h"
#include "data/csv/csv_rows.h"

// Tables of numbers that are cut into shards, read by the ranks of a training, each its share. A
// shard is a folder with a file of each table, whose rows belong together by an ID:
//
//   data/a/descriptors.tsv   ID x0 x1 ...      data/b/descriptors.tsv
//   data/a/targets.tsv       ID target         data/b/targets.tsv

namespace tenon {

/// Where the shards are and which of them a rank reads. Shards are counted in the order of their
/// names.
enum class ShardPartition {
  kMod,  ///< Of one folder: shard i is that of rank i % ranks.
  kDiv,  ///< Of one folder: each rank has successive ones; the first ranks one more, where they do
         ///< not come out even.
  kOwn,  ///< Each rank has a folder of its own, and all that is in it.
};

/// One table: how its files are called, what they are for, and how they are read.
struct ShardedTable {
  enum class Kind {
    kMaster,  ///< Its IDs are the rows, in their order.
    kLookup,  ///< Has a row for each of these IDs, which is looked up, and perhaps others.
  };

  std::string file;  // in the folder of each shard
  Kind kind = Kind::kLookup;
  /// The names of those that are read. Empty: all but the ID, as rank 0's first shard has them.
  std::vector<std::string> columns = {};
  /// kFloat, or kBool for columns of 0 and 1, which are floats in DistributedTable.
  DType dtype = DType::kFloat;
  /// By default lines of fields with tabs between them.
  CsvOptions reader = {.delimiter = '\t', .quotes = false};
};

struct ShardedTablesOptions {
  /// One of them is the master.
  std::vector<ShardedTable> tables;
  /// The column with the ID, in all of them.
  std::string id = "ID";
  ShardPartition partition = ShardPartition::kMod;
};

/// A table as a rank has it.
struct DistributedTable {
  std::vector<std::string> columns;
  /// Its own rows, floats: [rows, columns]. Row i of all tables is of one ID.
  Tensor rows;
  /// The least and the greatest number of each column over the rows of all ranks.
  std::vector<float> min, max;
  /// The rows, and the shards, of each rank.
  std::vector<int64_t> rows_of_ranks, shards_of_ranks;
};

/// Reads the tables of this rank's shards in `folder`, which holds a folder for each; others of its
/// files, and names that begin with a dot, are passed over. Called by all ranks. In the order of
/// options.tables; every rank has at least a row.
///
/// An error of one is one of all (OkOnAllRanks), and says the file and the line: NotFound for
/// folders, files and columns that are not there; InvalidArgument for a field that is no finite
/// number, for an ID that is empty, is there twice, on whichever ranks, or is missed in a table;
/// FailedPrecondition for ranks that are left without a row, and where ranks see other shards than
/// rank 0 in what is to be one folder. The IDs of all ranks are in the memory of each meanwhile.
StatusOr<std::vector<DistributedTable>> ReadShardedTables(Communicator& ranks,
                                                          const std::string& folder,
                                                          const ShardedTablesOptions& options);

}  // namespace tenon
