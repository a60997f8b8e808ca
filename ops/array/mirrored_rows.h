// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/array/strided_copy.h"
#include "ops/maths.h"

namespace tenon {

/// Rows of a tensor seen as `blocks` times `rows` times `width` elements: in each block row
/// from - i is to be added to row to + i, for i up to `count`. None is both.
struct MirroredRows {
  int64_t blocks = 0, rows = 0, width = 0;
  int64_t from = 0, to = 0, count = 0;

  struct Pair {
    int64_t source, target;
  };
  int64_t num_elements() const { return blocks * count * width; }
  /// Element k of all that are added, and the one it is added to.
  TENON_HD Pair At(int64_t k) const {
    const int64_t column = k % width, i = k / width % count, block = k / width / count;
    return {(block * rows + from - i) * width + column, (block * rows + to + i) * width + column};
  }
};
using AddMirroredRows = Status (*)(KernelContext& ctx, const MirroredRows& rows, Tensor* data);

/// The kernel of MirrorPadGrad with a device's sums.
Status MirrorPadGradKernel(KernelContext& ctx, const Mover& mover, AddMirroredRows add,
                           const std::string& mode);

}  // namespace tenon
