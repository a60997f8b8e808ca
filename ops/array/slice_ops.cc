// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/moving_kernels.h"
#include "ops/array/shared_rows.h"
#include "ops/composition.h"
#include "ops/math/operators.h"

namespace tenon {
namespace {

Status SliceShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (c.constant(2) == nullptr) return c.Return(PartialShape::OfRank(in.rank()));
  TENON_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegerVector(*c.constant(2), "size", in.rank()));
  const int rank = static_cast<int>(sizes.size());
  DimVector begins(rank, PartialShape::kUnknownDim);
  if (c.constant(1) != nullptr) {
    TENON_ASSIGN_OR_RETURN(begins, ReadIntegerVector(*c.constant(1), "begin", rank));
  }
  for (int i = 0; i < rank; ++i) {
    if (sizes[i] != -1) continue;
    const int64_t d = in.dim(i);
    if (d >= 0 && begins[i] >= 0 && begins[i] <= d) sizes[i] = d - begins[i];
  }
  return c.Return(PartialShape(sizes));
}

/// dy with zeros around it: Pad by begin before and by what is left after.
void SliceGrad(GradContext& g) {
  const Output begin = g.in(1);
  const Output in_shape = ShapeOf(g.in(0), {.out_type = begin.dtype()});
  const Output out_shape = ShapeOf(g.out(0), {.out_type = begin.dtype()});
  g.dx(0) = Pad(g.dy(0), Pack({begin, in_shape - out_shape - begin}, {.axis = 1}));
}

}  // namespace

Status SliceKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const DimVector begin,
                         ReadIntegerVector(ctx.input(1), "begin", in.rank()));
  TENON_ASSIGN_OR_RETURN(DimVector size, ReadIntegerVector(ctx.input(2), "size", in.rank()));
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t b = begin[i], d = in.dim(i);
    if (b < 0 || b > d) return InvalidArgument("begin[", i, "] = ", b, " is not in [0, ", d, "]");
    if (size[i] == -1) size[i] = d - b;
    if (size[i] < 0 || size[i] > d - b) {
      return InvalidArgument("size[", i, "] = ", size[i], " is not in [0, ", d - b, "]");
    }
  }
  const Shape shape(size);
  if (shape == in.shape()) return ctx.Return(ctx.TakeInput(0));
  const bool takes_rows = in.shape().WithDim(0, size[0]) == shape;
  if (takes_rows && RowsAreAligned(in, begin[0], begin[0] + size[0])) {
    return ctx.Return(in.Slice(begin[0], begin[0] + size[0]));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  return mover.copy(ctx, in, BoxView(in.shape().dims(), begin), out, {0, StridesOf(size)}, size);
}

void RegisterSliceOps(OpRegistry& ops) {
  ops.Add("Slice", SliceShape, With<kHostMover, SliceKernel>::Run)
      .Grad(SliceGrad)
      .Example({Shape{3, 4}, Tensor::Vector({1, 0}), Tensor::Vector({2, -1})});
}

}  // namespace tenon
