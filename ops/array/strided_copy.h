// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"
#include "ops/array/copy_axis.h"

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

using CopyAxes = absl::InlinedVector<CopyAxis, 6>;
/// The axes of such a box without those of size 1, and with neighbours joined that both sides walk
/// as one; at least one.
CopyAxes SimplifiedAxes(absl::Span<const int64_t> dims, const StridedView& source,
                        const StridedView& target);

/// One of the arrays that are joined: each of the result's rows has `run` of its elements.
struct JoinedArray {
  const Tensor* array;
  int64_t run;
};

/// How elements are moved in the memory of a kernel's device: what kernels that only move elements
/// are written with.
struct Mover {
  /// Does what StridedCopy does.
  Status (*copy)(KernelContext& ctx, const Tensor& from, const StridedView& source, Tensor* to,
                 const StridedView& target, absl::Span<const int64_t> dims);
  /// Copies `count` neighbours from element `i` of `from` on to element `j` of `to`.
  Status (*copy_run)(KernelContext& ctx, const Tensor& from, int64_t i, Tensor* to, int64_t j,
                     int64_t count);
  /// Makes each of the `rows` rows of `to` of the next run of each array in turn.
  Status (*join)(KernelContext& ctx, absl::Span<const JoinedArray> arrays, int64_t rows,
                 Tensor* to);
  /// Makes every element of `to` zero, false or empty.
  Status (*zero)(KernelContext& ctx, Tensor* to);
  /// Makes every element of `to` the one of the scalar `value`, which may be in host memory.
  Status (*fill)(KernelContext& ctx, const Tensor& value, Tensor* to);
};
/// In host memory.
extern const Mover kHostMover;

/// A kernel that is written with a Mover, as one for the memory of kMover: With<kMover,
/// kernel>::Run.
template <const Mover& kMover, auto kKernel>
struct With;
template <const Mover& kMover, typename... Attrs,
          Status (*kKernel)(KernelContext&, const Mover&, Attrs...)>
struct With<kMover, kKernel> {
  static Status Run(KernelContext& ctx, Attrs... attrs) { return kKernel(ctx, kMover, attrs...); }
};

/// Where a box that begins at `begin` lies in a tensor of shape `dims`.
StridedView BoxView(absl::Span<const int64_t> dims, absl::Span<const int64_t> begin);

}  // namespace tenon
