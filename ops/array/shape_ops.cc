// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/inline_kernel.h"
#include "ops/array/register.h"

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
  for (int i = 0; i < c.num_outputs(); ++i) {
    const PartialShape& in = c.input(i);
    c.set_output(i, in.rank_known() ? PartialShape{in.rank()} : PartialShape::OfRank(1));
  }
  return OkStatus();
}

Status SizeKernel(KernelContext& ctx) {
  const int64_t n = ctx.input(0).num_elements();
  if (ctx.output_type(0) == DType::kInt64) {
    ctx.set_output(0, Tensor::Scalar<int64_t>(n));
  } else if (n > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("the number of elements ", n,
                           " does not fit in int32; ask for out_type int64");
  } else {
    ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(n)));
  }
  return OkStatus();
}

Status RankKernel(KernelContext& ctx) {
  ctx.set_output(0, Tensor::Scalar<int32_t>(ctx.input(0).rank()));
  return OkStatus();
}

/// Replaces the one -1 among `sizes` so that they hold the elements of `input`. Where both have a
/// dimension of 0, which leaves the -1 open, it is what TensorFlow makes of it: the quotient of the
/// other dimensions, rounded down.
Status ResolveShape(absl::Span<const int64_t> input, DimVector* sizes) {
  int unknown = -1;
  bool zero = false;
  int64_t known = 1;
  for (size_t i = 0; i < sizes->size(); ++i) {
    const int64_t size = (*sizes)[i];
    if (size == -1) {
      if (unknown >= 0) {
        return InvalidArgument("only one size may be -1, found it at ", unknown, " and ", i);
      }
      unknown = static_cast<int>(i);
    } else if (size < 0) {
      return InvalidArgument("size ", i, " must be non-negative, not ", size);
    } else if (size == 0) {
      zero = true;
    } else {
      TENON_ASSIGN_OR_RETURN(known, MultiplySizes(known, size));
    }
  }
  if (unknown < 0) return OkStatus();
  int64_t elements = 1;
  bool open = false;
  for (const int64_t d : input) {
    if (d > 0 || !zero) elements *= d;
    open |= d == 0 && zero;
  }
  if (!open && elements % known != 0) {
    return InvalidArgument("Input to reshape is a tensor with ", elements,
                           " values, but the requested shape requires a multiple of ", known);
  }
  (*sizes)[unknown] = elements / known;
  return OkStatus();
}

Status ReshapeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(DimVector dims, ReadIntegerVector(ctx.input(1), "shape"));
  const int64_t elements = ctx.input(0).num_elements();
  TENON_RETURN_IF_ERROR(ResolveShape(ctx.input(0).shape().dims(), &dims));
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  if (shape.num_elements() != elements) {
    return InvalidArgument("Input to reshape is a tensor with ", elements,
                           " values, but the requested shape has ", shape.num_elements());
  }
  const Tensor in = ctx.TakeInput(0);
  TENON_ASSIGN_OR_RETURN(Tensor out, in.Reshaped(shape));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status ReshapeShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape wanted, c.ConstantShape(1));
  const auto elements = c.input(0).num_elements();
  if (!wanted.rank_known() || !elements || c.constant(1) == nullptr) {
    c.set_output(0, wanted);
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(DimVector dims, ReadIntegerVector(*c.constant(1), "shape"));
  TENON_RETURN_IF_ERROR(ResolveShape(c.input(0).dims(), &dims));
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  if (shape.num_elements() != *elements) {
    return InvalidArgument("cannot reshape ", c.input(0).ToString(), " (", *elements,
                           " elements) to ", shape.ToString(), " (", shape.num_elements(), ")");
  }
  c.set_output(0, shape);
  return OkStatus();
}

void ReshapeGrad(GradContext& g) { g.dx(0) = Reshape(g.dy(0), ShapeOf(g.in(0))); }

Status ExpandDimsKernel(KernelContext& ctx) {
  const Tensor in = ctx.TakeInput(0);
  TENON_ASSIGN_OR_RETURN(const int64_t dim, ReadOnlyInteger(ctx.input(1), "dim"));
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, in.rank() + 1, "dim"));
  if (in.rank() == Shape::kMaxRank) {
    return InvalidArgument("a tensor has at most ", Shape::kMaxRank, " dimensions");
  }
  TENON_ASSIGN_OR_RETURN(Tensor out, in.Reshaped(in.shape().WithInsertedDim(axis, 1)));
  ctx.set_output(0, std::move(out));
  return OkStatus();
}

Status ExpandDimsShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.rank_known()) return OkStatus();
  if (c.constant(1) == nullptr) {
    c.set_output(0, PartialShape::OfRank(in.rank() + 1));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const int64_t dim, ReadOnlyInteger(*c.constant(1), "dim"));
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, in.rank() + 1, "dim"));
  DimVector dims(in.dims().begin(), in.dims().end());
  dims.insert(dims.begin() + axis, 1);
  TENON_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Create(dims));
  c.set_output(0, std::move(out));
  return OkStatus();
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

class SqueezeKernel final : public Kernel {
 public:
  explicit SqueezeKernel(KernelConstruction& c)
      : Kernel(c), axes_(c.Attr<std::vector<int64_t>>("squeeze_dims")) {}
  Status Compute(KernelContext& ctx) const override {
    const Tensor in = ctx.TakeInput(0);
    TENON_ASSIGN_OR_RETURN(const DimVector dims, SqueezedDims(in.shape().dims(), axes_));
    TENON_ASSIGN_OR_RETURN(Tensor out, in.Reshaped(Shape(dims)));
    ctx.set_output(0, std::move(out));
    return OkStatus();
  }
  bool is_expensive() const override { return false; }

 private:
  const std::vector<int64_t> axes_;
};

Status SqueezeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  TENON_ASSIGN_OR_RETURN(const auto axes, c.Attr<std::vector<int64_t>>("squeeze_dims"));
  if (!in.rank_known()) return OkStatus();
  // Without axes, whether an unknown dimension stays is unknown, and so is the rank.
  if (axes.empty() && !in.IsFullyKnown()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const DimVector dims, SqueezedDims(in.dims(), axes));
  c.set_output(0, PartialShape(dims));
  return OkStatus();
}

}  // namespace

void RegisterShapeOps(OpRegistry& ops) {
  ops.Get("Shape")
      .Shape(ShapeShape)
      .Kernel<InlineKernel<ShapeKernel>>(kCpu, {.host_args = {"output"}})
      .NotDifferentiable()
      .Example({Shape{2, 3}})
      .Example({Shape{}}, {{"out_type", DType::kInt64}});
  ops.Get("ShapeN")
      .Shape(ShapeShape)
      .Kernel<InlineKernel<ShapeKernel>>(kCpu, {.host_args = {"output"}})
      .NotDifferentiable()
      .Example({Shape{2, 3}, Shape{4}}, {{"N", 2}});
  ops.Get("Size")
      .Shape(ScalarShape)
      .Kernel<InlineKernel<SizeKernel>>(kCpu, {.host_args = {"output"}})
      .NotDifferentiable()
      .Example({Shape{2, 3}});
  ops.Get("Rank")
      .Shape(ScalarShape)
      .Kernel<InlineKernel<RankKernel>>(kCpu, {.host_args = {"output"}})
      .NotDifferentiable()
      .Example({Shape{2, 3}});
  ops.Get("Reshape")
      .Shape(ReshapeShape)
      .Kernel<InlineKernel<ReshapeKernel>>(kCpu, {.host_args = {"shape"}})
      .Grad(ReshapeGrad)
      .Example({Shape{2, 6}, Tensor::Vector<int32_t>({3, -1})});
  ops.Get("ExpandDims")
      .Shape(ExpandDimsShape)
      .Kernel<InlineKernel<ExpandDimsKernel>>(kCpu, {.host_args = {"dim"}})
      .Grad(ReshapeGrad)
      .Example({Shape{2, 3}, Tensor::Scalar<int32_t>(-1)});
  ops.Get("Squeeze")
      .Shape(SqueezeShape)
      .Kernel<SqueezeKernel>(kCpu)
      .Grad(ReshapeGrad)
      .Example({Shape{1, 3, 1}})
      .Example({Shape{1, 3, 1}}, {{"squeeze_dims", std::vector<int64_t>{-1}}});
}

}  // namespace tenon
