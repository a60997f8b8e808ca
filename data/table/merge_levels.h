// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "data/table/table_shard.h"

namespace tenon {

/// The levels of a column over the whole table, in order: by their numbers where all of them are
/// numbers, else byte by byte. (R orders texts by the language of its user.)
struct TableLevels {
  std::vector<std::string> texts;
  std::vector<int64_t> counts;  // the rows with each
};

/// Merges what shards have of a column. The result does not depend on their number or order.
TableLevels MergeLevels(absl::Span<const ColumnLevels* const> shards);

}  // namespace tenon
