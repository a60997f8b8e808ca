// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"

namespace tenon {
namespace {

Status ShapeKernel(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    TENON_ASSIGN_OR_RETURN(Tensor shape, ShapeTensor(ctx.input(i).shape(), ctx.output_type(i)));
    ctx.set_output(i, std::move(shape));
  }
  return OkStatus();
}

Status ShapeShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape{c.input(i).rank()});
  return OkStatus();
}

Status SizeKernel(KernelContext& ctx) {
  const int64_t n = ctx.input(0).num_elements();
  if (ctx.output_type(0) == DType::kInt64) return ctx.Return(Tensor::Scalar(n));
  if (n <= std::numeric_limits<int32_t>::max()) {
    return ctx.Return(Tensor::Scalar(static_cast<int32_t>(n)));
  }
  return InvalidArgument("the number of elements ", n,
                         " does not fit in int32; ask for out_type int64");
}

Status RankKernel(KernelContext& ctx) { return ctx.Return(Tensor::Scalar(ctx.input(0).rank())); }

/// The shape that `t` holds, with the one -1 in it replaced so that it holds the elements of
/// `input`. Where both have a dimension of 0, which leaves the -1 open, it is what TensorFlow makes
/// of it: the quotient of the other dimensions, rounded down.
StatusOr<Shape> ReadNewShape(const Tensor& t, absl::Span<const int64_t> input) {
  TENON_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegerVector(t, "shape"));
  // One less than a tensor may have, as in TensorFlow.
  if (sizes.size() >= Shape::kMaxRank) {
    return InvalidArgument("too many dimensions: must be < ", Shape::kMaxRank, ", but received ",
                           sizes.size());
  }
  int unknown = -1;
  bool zero = false;
  int64_t known = 1;
  for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
    if (sizes[i] == -1) {
      if (unknown >= 0) {
        return InvalidArgument("Only one input size may be -1, not both ", unknown, " and ", i);
      }
      unknown = i;
    } else if (sizes[i] < 0) {
      return InvalidArgument("Size ", i, " must be non-negative, not ", sizes[i]);
    } else if (sizes[i] == 0) {
      zero = true;
    } else {
      TENON_ASSIGN_OR_RETURN(known, MultiplySizes(known, sizes[i]));
    }
  }
  if (unknown < 0) return Shape::Create(sizes);
  int64_t elements = 1;
  bool open = false;
  for (const int64_t d : input) {
    if (d > 0 || !zero) elements *= d;
    open |= d == 0 && zero;
  }
  if (!open && elements % known != 0) {
    return InvalidArgument("Input to reshape is a tensor with ", elements,
                           " values, but the requested shape requires a multiple of ", known,
                           ": its size must be evenly divisible by ", known);
  }
  sizes[unknown] = elements / known;
  return Shape::Create(sizes);
}

Status ReshapeKernel(KernelContext& ctx) {
  const Tensor in = ctx.TakeInput(0);
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadNewShape(ctx.input(1), in.shape().dims()));
  if (shape.num_elements() != in.num_elements()) {
    return InvalidArgument("Input to reshape is a tensor with ", in.num_elements(),
                           " values, but the requested shape has ", shape.num_elements());
  }
  return ctx.Return(in.Reshaped(shape));
}

Status ReshapeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  TENON_ASSIGN_OR_RETURN(const PartialShape wanted, c.ConstantShape(1));
  const auto elements = in.num_elements();
  if (!elements || c.constant(1) == nullptr) return c.Return(wanted);
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadNewShape(*c.constant(1), in.dims()));
  if (shape.num_elements() != *elements) {
    return InvalidArgument("Cannot reshape a tensor with ", *elements, " elements to shape ", shape,
                           " (", shape.num_elements(), " elements): the input has shape ", in);
  }
  return c.Return(shape);
}

void ReshapeGrad(GradContext& g) { g.dx(0) = Reshape(g.dy(0), ShapeOf(g.in(0))); }

/// Where among the dimensions of the result ExpandDims puts the new one.
StatusOr<int> ReadNewAxis(const Tensor& t, int rank) {
  TENON_ASSIGN_OR_RETURN(const int64_t dim, ReadOnlyInteger(t, "dim"));
  return NormalizeAxis(dim, rank + 1, "dim");
}

Status ExpandDimsKernel(KernelContext& ctx) {
  const Tensor in = ctx.TakeInput(0);
  TENON_ASSIGN_OR_RETURN(const int axis, ReadNewAxis(ctx.input(1), in.rank()));
  if (in.rank() == Shape::kMaxRank) {
    return InvalidArgument("a tensor has at most ", Shape::kMaxRank, " dimensions");
  }
  return ctx.Return(in.Reshaped(in.shape().WithInsertedDim(axis, 1)));
}

Status ExpandDimsShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.rank_known()) return OkStatus();
  if (c.constant(1) == nullptr) return c.Return(PartialShape::OfRank(in.rank() + 1));
  TENON_ASSIGN_OR_RETURN(const int axis, ReadNewAxis(*c.constant(1), in.rank()));
  return c.Return(in.WithInsertedDim(axis, 1));
}

/// The dimensions left after Squeeze; unknown ones that are not named are not allowed.
StatusOr<DimVector> SqueezedDims(absl::Span<const int64_t> dims, const std::vector<int64_t>& axes) {
  std::vector<bool> drop(dims.size(), axes.empty());
  for (const int64_t a : axes) {
    TENON_ASSIGN_OR_RETURN(const int axis,
                           NormalizeAxis(a, static_cast<int>(dims.size()), "squeeze_dims"));
    if (dims[axis] != 1 && dims[axis] != PartialShape::kUnknownDim) {
      return InvalidArgument("Can not squeeze dim[", axis, "], expected a dimension of 1, got ",
                             dims[axis]);
    }
    drop[axis] = true;
  }
  DimVector left;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!drop[i] || (axes.empty() && dims[i] != 1)) left.push_back(dims[i]);
  }
  return left;
}

Status SqueezeKernel(KernelContext& ctx, const std::vector<int64_t>& axes) {
  const Tensor in = ctx.TakeInput(0);
  TENON_ASSIGN_OR_RETURN(const DimVector dims, SqueezedDims(in.shape().dims(), axes));
  return ctx.Return(in.Reshaped(Shape(dims)));
}

Status SqueezeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  TENON_ASSIGN_OR_RETURN(const auto axes, c.Attr<std::vector<int64_t>>("squeeze_dims"));
  // Without axes, whether an unknown dimension stays is unknown, and so is the rank.
  if (axes.empty() ? !in.IsFullyKnown() : !in.rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const DimVector dims, SqueezedDims(in.dims(), axes));
  return c.Return(PartialShape(dims));
}

/// The shape after a Bitcast: a last dimension more or less when the element sizes differ.
StatusOr<DimVector> BitcastDims(absl::Span<const int64_t> dims, DType from, DType to) {
  DimVector out(dims.begin(), dims.end());
  const int64_t a = static_cast<int64_t>(SizeOf(from)), b = static_cast<int64_t>(SizeOf(to));
  if (a == 0 || b == 0) return InvalidArgument("cannot bitcast ", from, " to ", to);
  if (a > b) {
    out.push_back(a / b);
  } else if (a < b) {
    if (out.empty() || (out.back() != PartialShape::kUnknownDim && out.back() != b / a)) {
      return InvalidArgument("Cannot bitcast from ", static_cast<int>(from), " to ",
                             static_cast<int>(to), ": the last dimension of ", from, " must be ",
                             b / a, " to become ", to, ", found shape ", PartialShape(dims));
    }
    out.pop_back();
  }
  return out;
}

Status BitcastKernel(KernelContext& ctx) {
  const Tensor in = ctx.TakeInput(0);
  TENON_ASSIGN_OR_RETURN(const DimVector dims,
                         BitcastDims(in.shape().dims(), in.dtype(), ctx.output_type(0)));
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  return ctx.Return(in.BitcastTo(ctx.output_type(0), shape));
}

Status BitcastShape(ShapeContext& c) {
  if (!c.input(0).rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const DType from, c.Attr<DType>("T"));
  TENON_ASSIGN_OR_RETURN(const DType to, c.Attr<DType>("type"));
  TENON_ASSIGN_OR_RETURN(const DimVector dims, BitcastDims(c.input(0).dims(), from, to));
  return c.Return(PartialShape(dims));
}

}  // namespace

void RegisterShapeOps(OpRegistry& ops) {
  ops.Add("Shape", ShapeShape, ShapeKernel, {.cheap = true, .memory = kAnyMemory})
      .ShapeValue([](const ShapeContext& c) -> StatusOr<PartialShape> { return c.input(0); })
      .Example({Shape{2, 3}})
      .Example({Shape{}}, {{"out_type", DType::kInt64}});
  ops.Add("ShapeN", ShapeShape, ShapeKernel, {.cheap = true, .memory = kAnyMemory})
      .Example({Shape{2, 3}, Shape{4}}, {{"N", 2}});
  ops.Add("Size", ScalarShape, SizeKernel, {.cheap = true, .memory = kAnyMemory})
      .Example({Shape{2, 3}});
  ops.Add("Rank", ScalarShape, RankKernel, {.cheap = true, .memory = kAnyMemory})
      .Example({Shape{2, 3}});
  ops.Add("Reshape", ReshapeShape, ReshapeKernel, {.cheap = true, .memory = kAnyMemory})
      .Grad(ReshapeGrad)
      .Example({Shape{2, 6}, Tensor::Vector({3, -1})});
  ops.Add("ExpandDims", ExpandDimsShape, ExpandDimsKernel, {.cheap = true, .memory = kAnyMemory})
      .Grad(ReshapeGrad)
      .Example({Shape{2, 3}, Tensor::Scalar(-1)});
  ops.Add("Squeeze", SqueezeShape, SqueezeKernel,
          {.attrs = {"squeeze_dims"}, .cheap = true, .memory = kAnyMemory})
      .Grad(ReshapeGrad)
      .Example({Shape{1, 3, 1}})
      .Example({Shape{1, 3, 1}}, {{"squeeze_dims", std::vector<int64_t>{-1}}});
  ops.Add("Bitcast", BitcastShape, BitcastKernel)
      .Example({Tensor::Vector<float>({1, -2})}, {{"type", DType::kUInt8}});
}

}  // namespace tenon
