// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/span.h"

// The innermost loops of a pass. Rows of a level often come one after the other, and an addition to
// a place in memory waits for the last one to it: so all places to which a row is added have their
// turn before the next row.

namespace tenon {

/// The width of rows is a multiple of this, with zeros at their ends.
inline constexpr int64_t kRowUnit = 4;
inline int64_t PaddedWidth(int64_t width) { return (width + kRowUnit - 1) / kRowUnit * kRowUnit; }

/// Where multiples of rows are added: factors[r] * row r to the numbers from sums[places[r]] on.
struct RowTarget {
  double* sums;
  const int32_t* places;
  const double* factors;
};

/// Adds `count` rows of `width` numbers each.
void AddRowsTo(absl::Span<const RowTarget> targets, int64_t count, int64_t width,
               const double* rows);
/// Adds left[l][r] * row r, over all rows, to row l of `sums`.
void AddProductsTo(double* sums, int64_t count, int64_t width, absl::Span<const double* const> left,
                   const double* rows);

/// Where numbers are added: numbers[r] to sums[places[r]].
struct NumberTarget {
  double* sums;
  const int32_t* places;
  const double* numbers;
};

/// Adds `count` numbers to each target.
void AddNumbersTo(absl::Span<const NumberTarget> targets, int64_t count);

}  // namespace tenon
