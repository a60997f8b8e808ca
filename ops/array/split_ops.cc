// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/array/register.h"

namespace tenon {
namespace {

/// Cuts input `from` along `axis` into parts of `sizes`, which add up to its size there. With
/// `drop_axis` each part has size 1 and loses the dimension.
Status Cut(KernelContext& ctx, const Tensor& in, int axis, absl::Span<const int64_t> sizes,
           bool drop_axis) {
  const int64_t outer = Product(in.shape().dims(), 0, axis);
  const int64_t inner = Product(in.shape().dims(), axis + 1, in.rank());
  const int64_t row = in.dim(axis) * inner;
  int64_t at = 0;
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const Shape shape =
        drop_axis ? in.shape().WithoutDim(axis) : in.shape().WithDim(axis, sizes[i]);
    // Rows of the first dimension share the buffer.
    if (axis == 0) {
      TENON_ASSIGN_OR_RETURN(Tensor part, in.Slice(at, at + sizes[i]).Reshaped(shape));
      ctx.set_output(i, std::move(part));
      at += sizes[i];
      continue;
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, shape));
    const int64_t run = sizes[i] * inner;
    if (run > 0) {
      for (int64_t o = 0; o < outer; ++o) {
        if (o % kStepsBetweenLooks == 0 && Interrupted()) break;
        CopyElements(in.dtype(), ElementAt(in, o * row + at * inner), ElementAt(*out, o * run),
                     run);
      }
    }
    at += sizes[i];
  }
  return OkStatus();
}

Status SplitKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(ctx.input(0), in.rank(), "split_dim"));
  const int64_t n = ctx.num_outputs();
  if (in.dim(axis) % n != 0) {
    return InvalidArgument(
        "Number of ways to split should evenly divide the split dimension, but "
        "got split_dim ",
        axis, " (size = ", in.dim(axis), ") and num_split ", n);
  }
  return Cut(ctx, in, axis, DimVector(n, in.dim(axis) / n), false);
}

/// The sizes of SplitV, with the one -1 among them replaced.
Status ResolveSizes(int64_t size, DimVector* sizes) {
  int64_t sum = 0;
  int unknown = -1;
  for (size_t i = 0; i < sizes->size(); ++i) {
    if ((*sizes)[i] == -1 && unknown < 0) {
      unknown = static_cast<int>(i);
    } else if ((*sizes)[i] < 0) {
      return InvalidArgument("Split size at index ", i,
                             " must be >= 0, and only one may be -1. Got: ", (*sizes)[i]);
    } else {
      TENON_ASSIGN_OR_RETURN(sum, AddSizes(sum, (*sizes)[i]));
    }
  }
  if (unknown >= 0 ? sum > size : sum != size) {
    return InvalidArgument(
        "Determined shape must either match input shape along split_dim exactly "
        "if fully specified, or be less than the size of the input along "
        "split_dim if not fully specified. Got: ",
        sum, " for ", size);
  }
  if (unknown >= 0) (*sizes)[unknown] = size - sum;
  return OkStatus();
}

Status SplitVKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegers(ctx.input(1), "size_splits"));
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(ctx.input(2), in.rank(), "split_dim"));
  if (static_cast<int>(sizes.size()) != ctx.num_outputs()) {
    return InvalidArgument("size_splits must have num_split = ", ctx.num_outputs(),
                           " elements, found ", sizes.size());
  }
  TENON_RETURN_IF_ERROR(ResolveSizes(in.dim(axis), &sizes));
  return Cut(ctx, in, axis, sizes, false);
}

class UnpackKernel final : public Kernel {
 public:
  explicit UnpackKernel(KernelConstruction& c) : Kernel(c), axis_(c.Attr<int64_t>("axis")) {}
  Status Compute(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_, in.rank(), "axis"));
    if (in.dim(axis) != ctx.num_outputs()) {
      return InvalidArgument("Input shape axis ", axis, " must equal ", ctx.num_outputs(),
                             ", got shape ", in.shape().ToString());
    }
    return Cut(ctx, in, axis, DimVector(ctx.num_outputs(), 1), true);
  }

 private:
  const int64_t axis_;
};

Status SplitShape(ShapeContext& c) {
  const PartialShape& in = c.input(1);
  if (!in.rank_known()) return OkStatus();
  PartialShape part = PartialShape::OfRank(in.rank());
  if (c.constant(0) != nullptr) {
    TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(*c.constant(0), in.rank(), "split_dim"));
    DimVector dims(in.dims().begin(), in.dims().end());
    const int64_t n = c.num_outputs();
    if (dims[axis] >= 0 && dims[axis] % n != 0) {
      return InvalidArgument("dimension ", axis, " of ", in.ToString(),
                             " is not evenly divisible by num_split ", n);
    }
    if (dims[axis] >= 0) dims[axis] /= n;
    part = PartialShape(dims);
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
  return OkStatus();
}

Status SplitVShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.rank_known()) return OkStatus();
  if (c.constant(2) == nullptr) {
    for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::OfRank(in.rank()));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(*c.constant(2), in.rank(), "split_dim"));
  DimVector sizes(c.num_outputs(), -1);
  if (c.constant(1) != nullptr && in.dim(axis) >= 0) {
    TENON_ASSIGN_OR_RETURN(sizes, ReadIntegers(*c.constant(1), "size_splits"));
    if (static_cast<int>(sizes.size()) != c.num_outputs()) {
      return InvalidArgument("size_splits must have num_split = ", c.num_outputs(),
                             " elements, found ", sizes.size());
    }
    TENON_RETURN_IF_ERROR(ResolveSizes(in.dim(axis), &sizes));
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    DimVector dims(in.dims().begin(), in.dims().end());
    dims[axis] = sizes[i];
    c.set_output(i, PartialShape(dims));
  }
  return OkStatus();
}

Status UnpackShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const int64_t wanted, c.Attr<int64_t>("axis"));
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(wanted, in.rank(), "axis"));
  if (in.dim(axis) >= 0 && in.dim(axis) != c.num_outputs()) {
    return InvalidArgument("dimension ", axis, " of ", in.ToString(),
                           " must equal num = ", c.num_outputs());
  }
  DimVector dims(in.dims().begin(), in.dims().end());
  dims.erase(dims.begin() + axis);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape(dims));
  return OkStatus();
}

template <int kValue, int kAxis>
void SplitGrad(GradContext& g) {
  const std::vector<Output> all = DysOrZeros(g);
  g.dx(kValue) = all.size() == 1 ? all[0] : ConcatV2(all, g.in(kAxis));
}

void UnpackGrad(GradContext& g) {
  g.dx(0) = Pack(DysOrZeros(g), {.axis = g.Attr<int64_t>("axis", 0)});
}

}  // namespace

void RegisterSplitOps(OpRegistry& ops) {
  ops.Get("Split")
      .Shape(SplitShape)
      .Kernel(kCpu, SplitKernel, {.host_args = {"split_dim"}})
      .Grad(SplitGrad<1, 0>)
      .Example({Tensor::Scalar<int32_t>(1), Shape{2, 6}}, {{"num_split", 3}})
      .Example({Tensor::Scalar<int32_t>(0), Shape{2, 3}}, {{"num_split", 2}});
  ops.Get("SplitV")
      .Shape(SplitVShape)
      .Kernel(kCpu, SplitVKernel, {.host_args = {"size_splits", "split_dim"}})
      .Grad(SplitGrad<0, 2>)
      .Example({Shape{2, 6}, Tensor::Vector<int64_t>({1, -1, 3}), Tensor::Scalar<int32_t>(-1)},
               {{"num_split", 3}});
  ops.Get("Unpack")
      .Shape(UnpackShape)
      .Kernel<UnpackKernel>(kCpu)
      .Grad(UnpackGrad)
      .Example({Shape{2, 3}}, {{"num", 3}, {"axis", -1}});
}

}  // namespace tenon
