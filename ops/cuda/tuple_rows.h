// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device/device_queue.h"
#include "ops/array/index_tuples.h"
#include "ops/cuda/index_check.h"
#include "ops/cuda/kernel_types.h"

namespace tenon::cuda {

/// Which row each of several index tuples names in a tensor seen as rows, found as it is asked for.
class TupleRows {
 public:
  static constexpr int kMaxDepth = 16;

  /// The tuples along the last dimension of `indices`, in device memory, into `shape`, whose sizes
  /// must have passed SizesOfTuples. Unimplemented for tuples of more than kMaxDepth.
  static StatusOr<TupleRows> Create(const Tensor& indices, const Shape& shape) {
    TupleRows rows;
    const int64_t depth = indices.dim(indices.rank() - 1);
    if (depth > kMaxDepth) return Unimplemented("index tuples of ", depth, " numbers");
    rows.depth_ = static_cast<int>(depth);
    rows.indices_ = IndexReader(indices);
    const DimVector strides = StridesOf(shape.dims().first(rows.depth_));
    for (int d = 0; d < rows.depth_; ++d) {
      rows.sizes_[d] = shape.dim(d);
      rows.strides_[d] = strides[d];
    }
    return rows;
  }

  /// The row that tuple `i` names; -1, and the number that is to blame, when it is out of range.
  TENON_HD int64_t Row(int64_t i, int64_t* bad) const {
    int64_t row = 0;
    for (int d = 0; d < depth_; ++d) {
      const int64_t at = indices_[i * depth_ + d];
      if (at < 0 || at >= sizes_[d]) {
        *bad = at;
        return -1;
      }
      row += at * strides_[d];
    }
    return row;
  }

 private:
  IndexReader indices_;
  int depth_ = 0;
  int64_t sizes_[kMaxDepth] = {}, strides_[kMaxDepth] = {};
};

/// A check (see AddCheck) of tuples: their place and the number to blame are noted.
RunCheck AddTupleCheck(const KernelContext& ctx, const NodeIdentity& node, const Shape& indices,
                       std::string_view what, const Shape& shape);

/// Queues a look at `count` tuples that are not used otherwise.
Status CheckTuples(KernelContext& ctx, const TupleRows& tuples, int64_t count, RunCheck check);

}  // namespace tenon::cuda
