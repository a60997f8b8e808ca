// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "ops/segment_loop.h"

namespace tenon {

/// Row values[i] belongs to segment ids[i], or row i where `values` is empty; in that order.
/// Negative ids are passed over, the others must be below `segments`.
SegmentedRows GroupRows(absl::Span<const int64_t> ids, int64_t segments,
                        absl::Span<const int64_t> values = {});

/// How many segments sorted ids make, the last id and one; with `limit`, so many, which
/// all ids must be below. InvalidArgument for ids that are negative or not sorted.
StatusOr<int64_t> SortedSegments(absl::Span<const int64_t> ids,
                                 std::optional<int64_t> limit = std::nullopt);

/// What is made of the rows of a segment: kSqrtN is the sum divided by the square root of their
/// number.
enum class Reduction { kSum, kMean, kSqrtN, kProd, kMax, kMin };

struct ReduceSegmentsOptions {
  /// What kMax and kMin are of no rows: 0, or the lowest and the highest number.
  bool zero_if_empty = true;
  /// Whether a sum that only has -0 is -0: it begins with its first row, not with 0.
  bool keep_negative_zero = false;
  /// For kSum of floats: row r counts scales[r] times.
  absl::Span<const double> scales = {};
};

/// Row s of `to` becomes the reduction of the rows of segment s of `from`, element by element; both
/// are seen as rows of `width` elements. Of no rows it is 0, of kProd 1. 16-bit floats are added up
/// in float. Runs in parallel by segments, and stops when the kernel is interrupted. Unimplemented
/// for dtypes that have no such reduction.
Status ReduceSegments(Reduction reduction, const Tensor& from, const SegmentedRows& segments,
                      int64_t width, Tensor* to, const ReduceSegmentsOptions& options = {});

}  // namespace tenon
