// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/array/register.h"
#include "ops/array/strided_copy.h"

namespace tenon {
namespace {

Status SliceKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const DimVector begin, ReadIntegerVector(ctx.input(1), "begin"));
  TENON_ASSIGN_OR_RETURN(DimVector size, ReadIntegerVector(ctx.input(2), "size"));
  const int rank = in.rank();
  if (static_cast<int>(begin.size()) != rank || static_cast<int>(size.size()) != rank) {
    return InvalidArgument("Expected begin and size arguments to be 1-D tensors of size ", rank,
                           ", but got shapes [", begin.size(), "] and [", size.size(),
                           "] instead.");
  }
  bool whole = true;
  for (int i = 0; i < rank; ++i) {
    const int64_t b = begin[i], d = in.dim(i);
    if (b < 0 || b > d) {
      return InvalidArgument("Expected begin[", i, "] in [0, ", d, "], but got ", b);
    }
    if (size[i] == -1) size[i] = d - b;
    if (size[i] < 0 || size[i] > d - b) {
      return InvalidArgument("Expected size[", i, "] in [0, ", d - b, "], but got ", size[i]);
    }
    whole = whole && size[i] == d;
  }
  if (whole) {
    ctx.set_output(0, ctx.TakeInput(0));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(size));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return OkStatus();
  // Offsets are only sure to fit where there are elements.
  StridedView source{0, StridesOf(in.shape().dims())};
  for (int i = 0; i < rank; ++i) source.offset += begin[i] * source.strides[i];
  StridedCopy(in, source, out, {0, StridesOf(size)}, size);
  return OkStatus();
}

Status SliceShape(ShapeContext& c) {
  const PartialShape in = c.input(0);
  const Tensor* begin = c.constant(1);
  const Tensor* size = c.constant(2);
  if (size == nullptr) {
    if (in.rank_known()) c.set_output(0, PartialShape::OfRank(in.rank()));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegerVector(*size, "size"));
  if (in.rank_known() && in.rank() != static_cast<int>(sizes.size())) {
    return InvalidArgument("size has ", sizes.size(), " entries for an input of shape ",
                           in.ToString());
  }
  DimVector begins(sizes.size(), PartialShape::kUnknownDim);
  if (begin != nullptr) {
    TENON_ASSIGN_OR_RETURN(begins, ReadIntegerVector(*begin, "begin"));
    if (begins.size() != sizes.size()) {
      return InvalidArgument("begin has ", begins.size(), " entries, size has ", sizes.size());
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != -1) continue;
    const int64_t d = in.dim(static_cast<int>(i));
    if (d >= 0 && begins[i] >= 0 && begins[i] <= d) sizes[i] = d - begins[i];
  }
  TENON_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Create(sizes));
  c.set_output(0, std::move(out));
  return OkStatus();
}

/// dy with zeros around it: Pad by begin before and by what is left after.
void SliceGrad(GradContext& g) {
  const Output begin = g.in(1);
  const DType index = begin.dtype();
  const Output in_shape = ShapeOf(g.in(0), {.out_type = index});
  const Output out_shape = ShapeOf(g.out(0), {.out_type = index});
  const Output after = Sub(Sub(in_shape, out_shape), begin);
  g.dx(0) = Pad(g.dy(0), Pack({begin, after}, {.axis = 1}));
}

/// The paddings of every dimension: before and after.
StatusOr<std::vector<std::pair<int64_t, int64_t>>> ReadPaddings(const Tensor& t, int rank) {
  if (t.rank() != 2 || t.dim(0) != rank || t.dim(1) != 2) {
    return InvalidArgument("paddings must be a matrix with 2 columns and one row for each of the ",
                           rank, " dimensions, found shape ", t.shape().ToString());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector flat, ReadIntegers(t, "paddings"));
  std::vector<std::pair<int64_t, int64_t>> paddings(rank);
  for (int i = 0; i < rank; ++i) {
    paddings[i] = {flat[2 * i], flat[2 * i + 1]};
    if (flat[2 * i] < 0 || flat[2 * i + 1] < 0) {
      return InvalidArgument("Paddings must be non-negative: ", flat[2 * i], " ", flat[2 * i + 1]);
    }
  }
  return paddings;
}

StatusOr<int64_t> PaddedSize(int64_t size, const std::pair<int64_t, int64_t>& padding) {
  TENON_ASSIGN_OR_RETURN(const int64_t with_first, AddSizes(size, padding.first));
  return AddSizes(with_first, padding.second);
}

Status PadKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const auto paddings, ReadPaddings(ctx.input(1), in.rank()));
  DimVector dims(in.rank());
  for (int i = 0; i < in.rank(); ++i) {
    TENON_ASSIGN_OR_RETURN(dims[i], PaddedSize(in.dim(i), paddings[i]));
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  if (ctx.num_inputs() > 2 && ctx.input(2).rank() != 0) {
    return InvalidArgument("constant_values must be a scalar, found shape ",
                           ctx.input(2).shape().ToString());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (ctx.num_inputs() > 2) {
    StridedCopy(ctx.input(2), {0, DimVector(1, 0)}, out, {0, DimVector(1, 1)},
                {shape.num_elements()});
  } else {
    ZeroElements(out);
  }
  // Offsets are only sure to fit where there are elements.
  if (in.num_elements() == 0) return OkStatus();
  StridedView target{0, StridesOf(dims)};
  for (int i = 0; i < in.rank(); ++i) target.offset += paddings[i].first * target.strides[i];
  StridedCopy(in, {0, StridesOf(in.shape().dims())}, out, target, in.shape().dims());
  return OkStatus();
}

Status PadShape(ShapeContext& c) {
  const PartialShape in = c.input(0);
  const Tensor* constant = c.constant(1);
  if (constant == nullptr || constant->rank() != 2) {
    if (in.rank_known()) c.set_output(0, PartialShape::OfRank(in.rank()));
    return OkStatus();
  }
  const int rank = in.rank_known() ? in.rank() : static_cast<int>(constant->dim(0));
  TENON_ASSIGN_OR_RETURN(const auto paddings, ReadPaddings(*constant, rank));
  DimVector dims(rank, PartialShape::kUnknownDim);
  for (int i = 0; i < rank; ++i) {
    if (in.dim(i) < 0) continue;
    TENON_ASSIGN_OR_RETURN(dims[i], PaddedSize(in.dim(i), paddings[i]));
  }
  TENON_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Create(dims));
  c.set_output(0, std::move(out));
  return OkStatus();
}

/// The part of dy where the input was. The value that was padded with gets no gradient, as in
/// TensorFlow.
void PadGrad(GradContext& g) {
  const Output x = g.in(0), paddings = g.in(1);
  const Output before = Reshape(
      StridedSlice(paddings, {0, 0}, {0, 1}, {1, 1}, {.begin_mask = 3, .end_mask = 1}), {-1});
  g.dx(0) = Slice(g.dy(0), before, ShapeOf(x, {.out_type = paddings.dtype()}));
}

}  // namespace

void RegisterSliceOps(OpRegistry& ops) {
  ops.Get("Slice")
      .Shape(SliceShape)
      .Kernel(kCpu, SliceKernel, {.host_args = {"begin", "size"}})
      .Grad(SliceGrad)
      .Example({Shape{3, 4}, Tensor::Vector<int32_t>({1, 0}), Tensor::Vector<int32_t>({2, -1})});
  ops.Get("Pad")
      .Shape(PadShape)
      .Kernel(kCpu, PadKernel, {.host_args = {"paddings"}})
      .Grad(PadGrad)
      .Example({Shape{2, 3}, Tensor::Of<int32_t>({2, 2}, {1, 0, 0, 2})});
  ops.Get("PadV2")
      .Shape(PadShape)
      .Kernel(kCpu, PadKernel, {.host_args = {"paddings", "constant_values"}})
      .Grad(PadGrad)
      .Example({Shape{2, 3}, Tensor::Of<int32_t>({2, 2}, {1, 0, 0, 2}), Shape{}});
}

}  // namespace tenon
