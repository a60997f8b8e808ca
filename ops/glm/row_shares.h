// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "data/table/table_shard.h"

namespace tenon {

/// The rows of a shard as the threads of a pass share them: the same, and in the same order, for
/// the same rows and ThreadBudget, so that sums over a share do not depend on time.
class RowShares {
 public:
  /// `shard`, which must outlive this, was read.
  explicit RowShares(const TableShard& shard);
  /// How many shares there are, at least one.
  int64_t count() const { return count_; }

  /// Gives the rows of all shares in chunks, those of a share one after the other. Shares are given
  /// at the same time. `ns_of_row` is a guess of what a row costs. The first error of a file that
  /// cannot be read again; Cancelled when the running kernel is interrupted.
  using Give = absl::FunctionRef<void(int64_t share, const TableBlock& block, int64_t begin,
                                      int64_t num_rows)>;
  Status ForEachChunk(double ns_of_row, Give give, const FileContext& context = {}) const;

 private:
  Status GiveShare(int64_t share, Give give, const FileContext& context) const;

  const TableShard& shard_;
  std::vector<const TableBlock*> held_;
  std::vector<int64_t> parsed_;        // units whose rows are not in memory
  std::vector<int64_t> first_chunks_;  // of the held blocks, and their number
  int64_t count_ = 1;
};

}  // namespace tenon
