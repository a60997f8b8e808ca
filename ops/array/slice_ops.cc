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
  TENON_ASSIGN_OR_RETURN(const DimVector begin, ReadIntegerVector(ctx.input(1), "begin"));
  TENON_ASSIGN_OR_RETURN(DimVector size, ReadIntegerVector(ctx.input(2), "size"));
  const int rank = in.rank();
  if (static_cast<int>(begin.size()) != rank || static_cast<int>(size.size()) != rank) {
    return InvalidArgument("Expected begin and size arguments to be 1-D tensors of size ", rank,
                           ", but got shapes [", begin.size(), "] and [", size.size(),
                           "] instead.");
  }
  for (int i = 0; i < rank; ++i) {
    const int64_t b = begin[i], d = in.dim(i);
    if (b < 0 || b > d) {
      return InvalidArgument("Expected begin[", i, "] in [0, ", d, "], but got ", b);
    }
    if (size[i] == -1) size[i] = d - b;
    if (size[i] < 0 || size[i] > d - b) {
      return InvalidArgument("Expected size[", i, "] in [0, ", d - b, "], but got ", size[i]);
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
  TENON_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegerVector(*c.constant(2), "size"));
  if (in.rank_known() && in.rank() != static_cast<int>(sizes.size())) {
    return InvalidArgument("size has ", sizes.size(), " entries for an input of shape ",
                           in.ToString());
  }
  DimVector begins(sizes.size(), PartialShape::kUnknownDim);
  if (c.constant(1) != nullptr) {
    TENON_ASSIGN_OR_RETURN(begins, ReadIntegerVector(*c.constant(1), "begin"));
    if (begins.size() != sizes.size()) {
      return InvalidArgument("begin has ", begins.size(), " entries, size has ", sizes.size());
    }
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != -1) continue;
    const int64_t d = in.dim(static_cast<int>(i));
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

struct Paddings {
  DimVector before, after;  // of every dimension

  StatusOr<int64_t> PaddedSize(int i, int64_t size) const {
    TENON_ASSIGN_OR_RETURN(size, AddSizes(size, before[i]));
    return AddSizes(size, after[i]);
  }
};

StatusOr<Paddings> ReadPaddings(const Tensor& t, int rank) {
  if (t.rank() != 2 || t.dim(0) != rank || t.dim(1) != 2) {
    return InvalidArgument("paddings must be a matrix with 2 columns and one row for each of the ",
                           rank, " dimensions, found shape ", t.shape().ToString());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector flat, ReadIntegers(t, "paddings"));
  Paddings paddings;
  for (int i = 0; i < rank; ++i) {
    const int64_t before = flat[2 * i], after = flat[2 * i + 1];
    if (before < 0 || after < 0) {
      return InvalidArgument("Paddings must be non-negative: ", before, " ", after);
    }
    paddings.before.push_back(before);
    paddings.after.push_back(after);
  }
  return paddings;
}

Status PadKernel(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const Paddings paddings, ReadPaddings(ctx.input(1), in.rank()));
  DimVector dims(in.rank());
  for (int i = 0; i < in.rank(); ++i) {
    TENON_ASSIGN_OR_RETURN(dims[i], paddings.PaddedSize(i, in.dim(i)));
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  const bool has_value = ctx.num_inputs() > 2;
  if (has_value && ctx.input(2).rank() != 0) {
    return InvalidArgument("constant_values must be a scalar, found shape ",
                           ctx.input(2).shape().ToString());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (has_value) {
    FillElements(ctx.input(2), out);
  } else {
    ZeroElements(out);
  }
  StridedCopy(in, {0, StridesOf(in.shape().dims())}, out, BoxView(dims, paddings.before),
              in.shape().dims());
  return OkStatus();
}

Status PadShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  const Tensor* const constant = c.constant(1);
  if (constant == nullptr || constant->rank() != 2) {
    return c.Return(PartialShape::OfRank(in.rank()));
  }
  const int rank = in.rank_known() ? in.rank() : static_cast<int>(constant->dim(0));
  TENON_ASSIGN_OR_RETURN(const Paddings paddings, ReadPaddings(*constant, rank));
  DimVector dims(rank, PartialShape::kUnknownDim);
  for (int i = 0; i < rank; ++i) {
    if (in.dim(i) < 0) continue;
    TENON_ASSIGN_OR_RETURN(dims[i], paddings.PaddedSize(i, in.dim(i)));
  }
  return c.Return(PartialShape(dims));
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
