// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/function_kernel.h"
#include "ops/array/strided_copy.h"

// The kernels that only move elements, one an op, for the memory of any device.

namespace tenon {

Status ConcatKernel(KernelContext& ctx, const Mover& mover);
Status ConcatV2Kernel(KernelContext& ctx, const Mover& mover);
Status PackKernel(KernelContext& ctx, const Mover& mover, int64_t axis);

Status SplitKernel(KernelContext& ctx, const Mover& mover);
Status SplitVKernel(KernelContext& ctx, const Mover& mover);
Status UnpackKernel(KernelContext& ctx, const Mover& mover, int64_t axis);

Status SliceKernel(KernelContext& ctx, const Mover& mover);
/// The masks of StridedSlice.
struct SliceMasks : KernelState {
  explicit SliceMasks(const KernelConstruction& c) : SliceMasks(c.attrs()) {}
  explicit SliceMasks(const AttributeMap& attrs);
  int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;
};
Status StridedSliceKernel(KernelContext& ctx, const Mover& mover, const SliceMasks& masks);
Status StridedSliceGradKernel(KernelContext& ctx, const Mover& mover, const SliceMasks& masks);

/// The kernel of Pad and PadV2.
Status PadKernel(KernelContext& ctx, const Mover& mover);
Status MirrorPadKernel(KernelContext& ctx, const Mover& mover, const std::string& mode);

Status TileKernel(KernelContext& ctx, const Mover& mover);
Status TransposeKernel(KernelContext& ctx, const Mover& mover);
/// The kernel of Reverse and ReverseV2.
Status ReverseKernel(KernelContext& ctx, const Mover& mover);
Status RollKernel(KernelContext& ctx, const Mover& mover);

Status FillKernel(KernelContext& ctx, const Mover& mover);

Status DiagKernel(KernelContext& ctx, const Mover& mover);
Status DiagPartKernel(KernelContext& ctx, const Mover& mover);
/// Which diagonals an op of matrices is about; only the third version says where they lie.
struct Alignment : KernelState {
  explicit Alignment(const KernelConstruction& c)
      : value(c.attrs().GetOr<std::string>("align", "")) {}
  const std::string value;
};
/// The kernels of all versions of MatrixDiagPart, MatrixDiag and MatrixSetDiag.
Status DiagonalPartKernel(KernelContext& ctx, const Mover& mover, const Alignment& align);
Status MatrixDiagKernel(KernelContext& ctx, const Mover& mover, const Alignment& align);
Status SetDiagKernel(KernelContext& ctx, const Mover& mover, const Alignment& align);

}  // namespace tenon
