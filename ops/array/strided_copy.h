// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor.h"

namespace tenon {

/// One side of a StridedCopy: where its first element is, and how many elements apart the
/// neighbours along each dimension are. Strides may be 0 (the source repeats) or negative.
struct StridedView {
  int64_t offset = 0;
  DimVector strides;
};

/// Copies a box of `dims` elements from `from` to `to`: the one loop behind slicing, padding,
/// transposing, reversing, tiling and concatenating. Both tensors have the same dtype; the views
/// stay inside them. Parallel when the box is large.
void StridedCopy(const Tensor& from, const StridedView& source, Tensor* to,
                 const StridedView& target, absl::Span<const int64_t> dims);

/// Makes every element of `to` the one of the scalar `value`.
void FillElements(const Tensor& value, Tensor* to);

/// Where a box that begins at `begin` lies in a tensor of shape `dims`.
StridedView BoxView(absl::Span<const int64_t> dims, absl::Span<const int64_t> begin);

}  // namespace tenon
