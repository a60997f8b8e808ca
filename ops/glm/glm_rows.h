// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/memory/counted_memory.h"
#include "data/table/table_shard.h"
#include "ops/glm/glm_design.h"

namespace tenon {

/// Some rows of a table as a design sees them. The rows that it cannot use are left out.
struct GlmChunk {
  int64_t count = 0;
  CountedVector<double> response, weight, offset;
  /// Trials of each row; empty where responses are no counts.
  CountedVector<double> trials;
  /// By group; empty for a group without a number, or without factors.
  std::vector<CountedVector<double>> numbers;
  std::vector<CountedVector<int32_t>> codes;

  int64_t num_missing = 0;     // rows with a missing value
  int64_t num_weightless = 0;  // rows whose weight is 0, or that have no trials
  int64_t num_left_out = 0;    // rows with a level that is left out
  int64_t num_infinite = 0;    // rows with a number that is not finite
  int64_t num_impossible = 0;  // rows whose response or weight the family cannot have
  double impossible = 0;       // the first of these
};

/// Reads rows chunk by chunk. Used by one thread at a time.
class GlmRowReader {
 public:
  static constexpr int64_t kChunkRows = 512;

  /// `design`, which must outlive this, was checked.
  explicit GlmRowReader(const GlmDesign& design);
  /// Reads `count` rows of a block from `begin` on. REQUIRES: count <= kChunkRows.
  void Read(const TableBlock& block, int64_t begin, int64_t count, GlmChunk* chunk);

 private:
  enum class RowState : uint8_t { kUsed, kMissing, kLeftOut, kInfinite, kImpossible, kWeightless };

  /// The numbers of rows, after which rows with missing and infinite ones are marked.
  void Evaluate(const GlmNumber& number, const TableBlock& block, double* out);
  void ReadResponse(const TableBlock& block, GlmChunk* chunk);
  /// The codes of rows, or the intervals that their numbers are in; -1 where there is none.
  void ReadCodes(const GlmFactor& factor, const TableBlock& block, CountedVector<int32_t>* out);
  void ReadFactor(size_t factor, const TableBlock& block, CountedVector<int32_t>* out);
  void ReadGroups(const TableBlock& block, GlmChunk* chunk);
  void Mark(int64_t row, RowState state) {
    any_marked_ = true;
    if (states_[row] == RowState::kUsed) states_[row] = state;
  }
  void MarkMissing(const double* numbers);
  void MarkInfinite(const double* numbers);
  /// Marks rows with responses or weights that the family cannot have, and those without weight.
  void MarkImpossible(const GlmChunk& chunk);
  /// Counts the rows that are not used and takes them out.
  void LeaveOut(GlmChunk* chunk);

  const GlmDesign& design_;
  const ResponseRange responses_;
  int64_t begin_ = 0, count_ = 0;  // of the rows that are read
  bool any_marked_ = false;
  std::vector<RowState> states_;
  std::vector<CountedVector<int32_t>> levels_;  // by factor that leaves some out: by code + 1
  std::vector<CountedVector<double>> column_values_;
  std::vector<CountedVector<int32_t>> factor_codes_;
};

}  // namespace tenon
