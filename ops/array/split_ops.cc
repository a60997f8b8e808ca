// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/moving_kernels.h"
#include "ops/array/shared_rows.h"
#include "ops/composition.h"

namespace tenon {
namespace {

/// Cuts `in` along `axis` into parts of `sizes`, which add up to its size there. With `drop_axis`
/// each part has size 1 and loses the dimension.
Status Cut(KernelContext& ctx, const Mover& mover, const Tensor& in, int axis,
           absl::Span<const int64_t> sizes, bool drop_axis = false) {
  const int64_t outer = Product(in.shape().dims(), 0, axis);
  const int64_t inner = Product(in.shape().dims(), axis + 1, in.rank());
  const int64_t row = in.dim(axis) * inner;
  if (ctx.num_outputs() == 1 && !drop_axis) return ctx.Return(in);
  const bool aligned = RowsAreAligned(in);
  int64_t at = 0;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const Shape shape =
        drop_axis ? in.shape().WithoutDim(axis) : in.shape().WithDim(axis, sizes[i]);
    if (axis == 0) {  // the part's rows share the buffer
      TENON_ASSIGN_OR_RETURN(Tensor part, in.Slice(at, at + sizes[i]).Reshaped(shape));
      if (!aligned) part.Settle();  // where TensorFlow copies
      ctx.set_output(i, std::move(part));
    } else {
      TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, shape));
      const int64_t run = sizes[i] * inner;
      TENON_RETURN_IF_ERROR(
          mover.copy(ctx, in, {at * inner, {row, 1}}, out, {0, {run, 1}}, {outer, run}));
    }
    at += sizes[i];
  }
  return OkStatus();
}

Status NotDivided(int64_t n, const PartialShape& shape, int axis) {
  return InvalidArgument("Number of ways to split should evenly divide the split dimension, but ",
                         "num_split = ", n, " does not divide dimension ", axis, " of ", shape);
}

/// The sizes of SplitV's `n` parts of a dimension of `size`, with the one -1 among them replaced.
StatusOr<DimVector> ReadSizes(const Tensor& t, int64_t size, int n) {
  TENON_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegers(t, "size_splits"));
  if (static_cast<int>(sizes.size()) != n) {
    return InvalidArgument("size_splits must have ", n, " elements, found ", sizes.size());
  }
  int64_t sum = 0;
  int64_t* unknown = nullptr;
  for (int i = 0; i < n; ++i) {
    if (sizes[i] == -1 && unknown == nullptr) {
      unknown = &sizes[i];
    } else if (sizes[i] < 0) {
      return InvalidArgument("Split size at index ", i,
                             " must be >= 0, and only one may be -1. Got: ", sizes[i]);
    } else {
      TENON_ASSIGN_OR_RETURN(sum, AddSizes(sum, sizes[i]));
    }
  }
  if (unknown != nullptr ? sum > size : sum != size) {
    return InvalidArgument("can't split axis of size ", size, " into pieces of sizes [",
                           Join(sizes, ","), "]: Determined shape must either match input shape ",
                           "along split_dim exactly if fully specified, or be less than the size ",
                           "of the input along split_dim if not fully specified. Got: ", sum);
  }
  if (unknown != nullptr) *unknown = size - sum;
  return sizes;
}

Status SplitShape(ShapeContext& c) {
  const PartialShape& in = c.input(1);
  TENON_ASSIGN_OR_RETURN(const auto axis, ReadAxis(c, 0, in.rank(), "split_dim"));
  if (!axis) return c.ReturnForEach(PartialShape::OfRank(in.rank()));
  const int64_t n = c.num_outputs(), size = in.dim(*axis);
  if (size < 0) return c.ReturnForEach(in);
  if (size % n != 0) {
    return NotDivided(n, in, *axis);
  }
  return c.ReturnForEach(in.WithDim(axis, size / n));
}

Status SplitVShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  TENON_ASSIGN_OR_RETURN(const auto axis, ReadAxis(c, 2, in.rank(), "split_dim"));
  if (!axis) return c.ReturnForEach(PartialShape::OfRank(in.rank()));
  DimVector sizes(c.num_outputs(), PartialShape::kUnknownDim);
  if (c.constant(1) != nullptr && in.dim(*axis) >= 0) {
    TENON_ASSIGN_OR_RETURN(sizes, ReadSizes(*c.constant(1), in.dim(*axis), c.num_outputs()));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, in.WithDim(axis, sizes[i]));
  return OkStatus();
}

Status UnpackShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  TENON_ASSIGN_OR_RETURN(const auto axis, AxisAttr(c, "axis", in.rank()));
  if (axis && in.dim(*axis) >= 0 && in.dim(*axis) != c.num_outputs()) {
    return InvalidArgument("dimension ", *axis, " of ", in, " must be num = ", c.num_outputs());
  }
  return c.ReturnForEach(in.WithoutDim(axis));
}

template <int kValue, int kAxis>
void SplitGrad(GradContext& g) {
  const std::vector<Output> all = DysOrZeros(g);
  g.dx(kValue) = all.size() == 1 ? all[0] : ConcatV2(all, g.in(kAxis));
}

void UnpackGrad(GradContext& g) {
  g.dx(0) = Pack(DysOrZeros(g), {.axis = g.Attr<int64_t>("axis")});
}

}  // namespace

Status SplitKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& in = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(ctx.input(0), in.rank(), "split_dim"));
  const int64_t n = ctx.num_outputs();
  if (in.dim(axis) % n != 0) {
    return NotDivided(n, in.shape(), axis);
  }
  return Cut(ctx, mover, in, axis, DimVector(n, in.dim(axis) / n));
}

Status SplitVKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& in = ctx.input(0);
  const Tensor& split_dim = ctx.input(2);
  if (split_dim.num_elements() != 1) {
    return InvalidArgument("split_dim_tensor must have exactly one element, found shape ",
                           split_dim.shape());
  }
  TENON_ASSIGN_OR_RETURN(const int64_t wanted, ReadOnlyInteger(split_dim, "split_dim"));
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(wanted, in.rank(), "split_dim"));
  TENON_ASSIGN_OR_RETURN(const DimVector sizes,
                         ReadSizes(ctx.input(1), in.dim(axis), ctx.num_outputs()));
  return Cut(ctx, mover, in, axis, sizes);
}

Status UnpackKernel(KernelContext& ctx, const Mover& mover, int64_t axis_attr) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_attr, in.rank(), "axis"));
  if (in.dim(axis) != ctx.num_outputs()) {
    return InvalidArgument("Input shape axis ", axis, " must equal ", ctx.num_outputs(),
                           ", got shape ", in.shape());
  }
  return Cut(ctx, mover, in, axis, DimVector(ctx.num_outputs(), 1), /*drop_axis=*/true);
}

void RegisterSplitOps(OpRegistry& ops) {
  ops.Add("Split", SplitShape, With<kHostMover, SplitKernel>::Run)
      .Grad(SplitGrad<1, 0>)
      .Example({Tensor::Scalar(1), Shape{2, 6}}, {{"num_split", 3}})
      .Example({Tensor::Scalar(0), Shape{2, 3}}, {{"num_split", 2}});
  ops.Add("SplitV", SplitVShape, With<kHostMover, SplitVKernel>::Run)
      .Grad(SplitGrad<0, 2>)
      .Example({Shape{2, 6}, Tensor::Vector<int64_t>({1, -1, 3}), Tensor::Scalar(-1)},
               {{"num_split", 3}});
  ops.Add("Unpack", UnpackShape, With<kHostMover, UnpackKernel>::Run, {.attrs = {"axis"}})
      .Grad(UnpackGrad)
      .Example({Shape{2, 3}}, {{"num", 3}, {"axis", -1}});
}

}  // namespace tenon
