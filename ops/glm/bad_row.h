// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "data/table/table_shard.h"
#include "ops/glm/glm_design.h"

namespace tenon {

/// A row that no model of a design can have: a number of it is not finite, or the family cannot
/// have its response or weight.
struct BadGlmRow {
  /// The number that is wrong, in the order in which a design has them: the response, its failures,
  /// the weight, the offsets, the numbers, those that factors cut.
  static constexpr int64_t kResponse = 0, kFailures = 1, kWeight = 2, kOthers = 3;

  int64_t unit = -1;  // of the shard; -1: there is no such row
  int64_t row = 0;    // in the unit
  int64_t part = kResponse;
  int64_t column = -1;  // the first one that the number is made of; -1: none
  double value = 0;     // of the number
};

/// The first bad row of a shard that was read. `design` was checked.
StatusOr<BadGlmRow> FindBadGlmRow(const GlmDesign& design, const TableShard& shard,
                                  const FileContext& context);

}  // namespace tenon
