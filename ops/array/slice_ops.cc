// SPDX-License-Identifier: Apache-2.0
#include "core/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/strided_copy.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/operators.h"

namespace tenon {
namespace {

Status SliceKernel(KernelContext& ctx) {
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
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  StridedCopy(in, BoxView(in.shape().dims(), begin), out, {0, StridesOf(size)}, size);
  return OkStatus();
}

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

/// What Pad makes of a tensor, of which single dimensions may be unknown (-1).
struct Padding {
  DimVector before;  // of every dimension
  DimVector dims;    // of the result
};

StatusOr<Padding> ReadPadding(const Tensor& t, absl::Span<const int64_t> dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (t.shape() != Shape{rank, 2}) {
    return InvalidArgument("paddings must be a matrix with 2 columns and one row for each of the ",
                           rank, " dimensions, found shape ", t.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector flat, ReadIntegers(t, "paddings"));
  Padding padding{DimVector(rank), DimVector(dims.begin(), dims.end())};
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t before = flat[2 * i], after = flat[2 * i + 1];
    if (before < 0 || after < 0) {
      return InvalidArgument("Paddings must be non-negative: ", before, " ", after);
    }
    padding.before[i] = before;
    if (dims[i] < 0) continue;
    TENON_ASSIGN_OR_RETURN(const int64_t behind, AddSizes(dims[i], after));
    TENON_ASSIGN_OR_RETURN(padding.dims[i], AddSizes(before, behind));
  }
  return padding;
}

Status PadKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const auto dims = in.shape().dims();
  TENON_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(ctx.input(1), dims));
  const bool has_value = ctx.num_inputs() > 2;
  if (has_value) TENON_RETURN_IF_ERROR(CheckScalars(ctx, 2, {"constant_values"}));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, padding.dims));
  if (has_value) {
    FillElements(ctx.input(2), out);
  } else {
    ZeroElements(out);
  }
  StridedCopy(in, {0, StridesOf(dims)}, out, BoxView(padding.dims, padding.before), dims);
  return OkStatus();
}

Status PadShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  const Tensor* const constant = c.constant(1);
  if (constant == nullptr || constant->rank() != 2) {
    return c.Return(PartialShape::OfRank(in.rank()));
  }
  const DimVector unknown(constant->num_elements() / 2, PartialShape::kUnknownDim);
  TENON_ASSIGN_OR_RETURN(const Padding padding,
                         ReadPadding(*constant, in.rank_known() ? in.dims() : unknown));
  return c.Return(PartialShape(padding.dims));
}

/// The part of dy where the input was. The value that was padded with gets no gradient, as in
/// TensorFlow.
void PadGrad(GradContext& g) {
  const Output paddings = g.in(1);
  const Output before = Reshape(
      StridedSlice(paddings, {0, 0}, {0, 1}, {1, 1}, {.begin_mask = 3, .end_mask = 1}), {-1});
  g.dx(0) = Slice(g.dy(0), before, ShapeOf(g.in(0), {.out_type = paddings.dtype()}));
}

}  // namespace

void RegisterSliceOps(OpRegistry& ops) {
  const Tensor paddings = Tensor::Of({2, 2}, {1, 0, 0, 2});
  ops.Add("Slice", SliceShape, SliceKernel)
      .Grad(SliceGrad)
      .Example({Shape{3, 4}, Tensor::Vector({1, 0}), Tensor::Vector({2, -1})});
  const auto pad = [&](std::string_view name) {
    return ops.Add(name, PadShape, PadKernel).Grad(PadGrad);
  };
  pad("Pad").Example({Shape{2, 3}, paddings});
  pad("PadV2").Example({Shape{2, 3}, paddings, Shape{}});
}

}  // namespace tenon
