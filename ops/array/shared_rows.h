// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace tenon {

// TensorFlow's kernels share rows of a tensor, instead of copying them, where the rows lie at
// multiples of 64 bytes; shared rows show later updates of the ref variable that the tensor
// follows.

/// Whether every row of `in` does (IsInnerDimsSizeAligned there).
inline bool RowsAreAligned(const Tensor& in) {
  constexpr int64_t kAlignment = 64, kTStringBytes = 24;
  const int64_t element = IsPlain(in.dtype()) ? SizeOf(in.dtype()) : kTStringBytes;
  return in.dim(0) > 0 && in.num_elements() / in.dim(0) * element % kAlignment == 0;
}

/// Whether rows [begin, end) of `in` do, which may be elements of a vector (IsDim0SliceAligned).
inline bool RowsAreAligned(const Tensor& in, int64_t begin, int64_t end) {
  if (in.rank() > 1) return RowsAreAligned(in);
  const int64_t step = IsPlain(in.dtype()) ? 64 / SizeOf(in.dtype()) : 8;
  return begin % step == 0 && end % step == 0;
}

}  // namespace tenon
