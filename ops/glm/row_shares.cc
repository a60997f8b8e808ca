// SPDX-License-Identifier: Apache-2.0
#include "ops/glm/row_shares.h"

#include <algorithm>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "ops/glm/glm_rows.h"

namespace tenon {

RowShares::RowShares(const TableShard& shard) : shard_(shard) {
  int64_t num_chunks = 0;
  for (int64_t u = 0; u < shard.num_units(); ++u) {
    if (!shard.is_held(u)) {
      parsed_.push_back(u);
      continue;
    }
    for (const TableBlock& block : shard.blocks(u)) {
      held_.push_back(&block);
      first_chunks_.push_back(num_chunks);
      num_chunks += (block.num_rows + GlmRowReader::kChunkRows - 1) / GlmRowReader::kChunkRows;
    }
  }
  first_chunks_.push_back(num_chunks);
  const auto num_parsed = static_cast<int64_t>(parsed_.size());
  count_ = std::max<int64_t>(1, std::min<int64_t>(ThreadBudget(), num_chunks + num_parsed));
}

Status RowShares::GiveShare(int64_t share, Give give, const FileContext& context) const {
  const auto give_chunks = [&](const TableBlock& block, int64_t first, int64_t end) {
    for (int64_t c = first; c < end && !Interrupted(); ++c) {
      const int64_t begin = c * GlmRowReader::kChunkRows;
      give(share, block, begin, std::min(GlmRowReader::kChunkRows, block.num_rows - begin));
    }
  };
  const int64_t begin = share * first_chunks_.back() / count_;
  const int64_t end = (share + 1) * first_chunks_.back() / count_;
  for (size_t b = 0; b < held_.size() && !Interrupted(); ++b) {
    const int64_t first = first_chunks_[b];
    give_chunks(*held_[b], std::max(begin, first) - first,
                std::min(end, first_chunks_[b + 1]) - first);
  }
  const auto num_parsed = static_cast<int64_t>(parsed_.size());
  for (int64_t p = share * num_parsed / count_; p < (share + 1) * num_parsed / count_; ++p) {
    TENON_RETURN_IF_ERROR(shard_.ForEachBlock(
        parsed_[p],
        [&](const TableBlock& block) -> Status {
          if (Interrupted()) return Cancelled("a pass over a table was interrupted");
          give_chunks(block, 0,
                      (block.num_rows + GlmRowReader::kChunkRows - 1) / GlmRowReader::kChunkRows);
          return OkStatus();
        },
        context));
  }
  return OkStatus();
}

Status RowShares::ForEachChunk(double ns_of_row, Give give, const FileContext& context) const {
  const double cost =
      ns_of_row * static_cast<double>(shard_.num_rows()) / static_cast<double>(count_);
  std::vector<Status> ends(count_);
  ParallelFor(count_, cost, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) ends[s] = GiveShare(s, give, context);
  });
  if (Interrupted()) return Cancelled("a pass over a table was interrupted");
  for (const Status& end : ends) TENON_RETURN_IF_ERROR(end);
  return OkStatus();
}

}  // namespace tenon
