// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/mirrored_rows.h"
#include "ops/array/moving_kernels.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// What Pad makes of a tensor, of which single dimensions may be unknown (-1).
struct Padding {
  DimVector before, after;  // of every dimension
  DimVector dims;           // of the result
};

StatusOr<Padding> ReadPadding(const Tensor& t, absl::Span<const int64_t> dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (t.shape() != Shape{rank, 2}) {
    if (t.rank() != 2 || t.dim(1) != 2) {
      return InvalidArgument("paddings must be a matrix with 2 columns, found shape ", t.shape());
    }
    return InvalidArgument("The first dimension of paddings must be the rank of inputs, ", rank,
                           ", found shape ", t.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector flat, ReadIntegers(t, "paddings"));
  Padding padding{DimVector(rank), DimVector(rank), DimVector(dims.begin(), dims.end())};
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t before = flat[2 * i], after = flat[2 * i + 1];
    if (before < 0 || after < 0) {
      return InvalidArgument("Paddings must be non-negative: ", before, " ", after);
    }
    padding.before[i] = before;
    padding.after[i] = after;
    if (dims[i] < 0) continue;
    TENON_ASSIGN_OR_RETURN(const int64_t behind, AddSizes(dims[i], after));
    TENON_ASSIGN_OR_RETURN(padding.dims[i], AddSizes(before, behind));
  }
  return padding;
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

/// Checks that the edges of `dims`, the size before padding, have so much to mirror; `edge`
/// elements at each are left out.
Status CheckMirrored(const Padding& padding, absl::Span<const int64_t> dims, int64_t edge) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t most = std::max(padding.before[i], padding.after[i]);
    if (dims[i] < 0 || most <= dims[i] - edge) continue;
    return InvalidArgument(
        "paddings must be no greater than the dimension size: ", padding.before[i], ", ",
        padding.after[i], " greater than ", dims[i] - edge);
  }
  return OkStatus();
}

int64_t EdgeOf(std::string_view mode) { return mode == "REFLECT" ? 1 : 0; }

Status MirrorPadShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(PadShape(c));
  const PartialShape& in = c.input(0);
  if (!in.rank_known() || c.constant(1) == nullptr) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(*c.constant(1), in.dims()));
  TENON_ASSIGN_OR_RETURN(const std::string mode, c.Attr<std::string>("mode"));
  return CheckMirrored(padding, in.dims(), EdgeOf(mode));
}

/// The size before padding of what has size `dims` after it.
StatusOr<DimVector> UnpaddedDims(const Padding& padding, absl::Span<const int64_t> dims,
                                 int64_t edge) {
  DimVector inner(dims.begin(), dims.end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) continue;
    TENON_ASSIGN_OR_RETURN(const int64_t around, AddSizes(padding.before[i], padding.after[i]));
    if (around >= dims[i]) {
      return InvalidArgument("paddings[", i, "] add ", around,
                             " to a dimension, which then has only ", dims[i]);
    }
    inner[i] = dims[i] - around;
  }
  TENON_RETURN_IF_ERROR(CheckMirrored(padding, inner, edge));
  return inner;
}

Status AddMirroredOnHost(KernelContext&, const MirroredRows& m, Tensor* data) {
  return DispatchStatus(data->dtype(), NumericTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    T* const elements = data->data<T>();
    const double row_ns = 5 + 0.5 * static_cast<double>(m.width);
    ParallelFor(m.blocks * m.count, row_ns, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end && m.width > 0; ++row) {
        const auto [source, target] = m.At(row * m.width);
        for (int64_t j = 0; j < m.width; ++j) {
          elements[target + j] = T(Plus(C(elements[target + j]), C(elements[source + j])));
        }
      }
    });
  });
}

Status MirrorPadGradOnHost(KernelContext& ctx, const std::string& mode) {
  return MirrorPadGradKernel(ctx, kHostMover, AddMirroredOnHost, mode);
}

Status MirrorPadGradShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.rank_known() || c.constant(1) == nullptr) {
    return c.Return(PartialShape::OfRank(in.rank()));
  }
  TENON_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(*c.constant(1), in.dims()));
  TENON_ASSIGN_OR_RETURN(const std::string mode, c.Attr<std::string>("mode"));
  TENON_ASSIGN_OR_RETURN(const DimVector dims, UnpaddedDims(padding, in.dims(), EdgeOf(mode)));
  return c.Return(PartialShape(dims));
}

}  // namespace

Status PadKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& in = ctx.input(0);
  const auto dims = in.shape().dims();
  TENON_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(ctx.input(1), dims));
  const bool has_value = ctx.num_inputs() > 2;
  if (dims == padding.dims) return ctx.Return(ctx.TakeInput(0));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, padding.dims));
  TENON_RETURN_IF_ERROR(has_value ? mover.fill(ctx, ctx.input(2), out) : mover.zero(ctx, out));
  return mover.copy(ctx, in, {0, StridesOf(dims)}, out, BoxView(padding.dims, padding.before),
                    dims);
}

Status MirrorPadKernel(KernelContext& ctx, const Mover& mover, const std::string& mode) {
  const Tensor& in = ctx.input(0);
  const auto dims = in.shape().dims();
  TENON_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(ctx.input(1), dims));
  const int64_t edge = EdgeOf(mode);
  TENON_RETURN_IF_ERROR(CheckMirrored(padding, dims, edge));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, padding.dims));
  TENON_RETURN_IF_ERROR(
      mover.copy(ctx, in, {0, StridesOf(dims)}, out, BoxView(padding.dims, padding.before), dims));
  // Axis by axis, so that the mirror images of one are mirrored by the next.
  DimVector begin = padding.before, box(dims.begin(), dims.end());
  for (int axis = 0; axis < in.rank(); ++axis) {
    const int64_t first = padding.before[axis], last = first + dims[axis] - 1;
    const auto mirror = [&](int64_t from, int64_t to, int64_t count) {
      box[axis] = count;
      begin[axis] = from;
      StridedView source = BoxView(padding.dims, begin);
      source.strides[axis] *= -1;
      begin[axis] = to;
      return mover.copy(ctx, *out, source, out, BoxView(padding.dims, begin), box);
    };
    TENON_RETURN_IF_ERROR(mirror(2 * first + edge - 1, 0, first));
    TENON_RETURN_IF_ERROR(mirror(last - edge, last + 1, padding.after[axis]));
    begin[axis] = 0;
    box[axis] = padding.dims[axis];
  }
  return OkStatus();
}

Status MirrorPadGradKernel(KernelContext& ctx, const Mover& mover, AddMirroredRows add,
                           const std::string& mode) {
  const Tensor& dy = ctx.input(0);
  const auto dims = dy.shape().dims();
  TENON_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(ctx.input(1), dims));
  const int64_t edge = EdgeOf(mode);
  TENON_ASSIGN_OR_RETURN(const DimVector inner, UnpaddedDims(padding, dims, edge));
  TENON_ASSIGN_OR_RETURN(Tensor folded, dy.Copy());
  for (int axis = 0; axis < dy.rank() && dy.num_elements() > 0; ++axis) {
    const int64_t first = padding.before[axis], last = first + inner[axis] - 1;
    const int64_t after = padding.after[axis];
    MirroredRows rows{.blocks = Product(dims, 0, axis),
                      .rows = dims[axis],
                      .width = Product(dims, axis + 1, dy.rank())};
    rows.from = first - 1;
    rows.to = first + edge;
    rows.count = first;
    TENON_RETURN_IF_ERROR(add(ctx, rows, &folded));
    rows.from = last + after;
    rows.to = last + 1 - edge - after;
    rows.count = after;
    TENON_RETURN_IF_ERROR(add(ctx, rows, &folded));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * dx, ctx.CreateOutput(0, inner));
  return mover.copy(ctx, folded, BoxView(dims, padding.before), dx, {0, StridesOf(inner)}, inner);
}

void RegisterPadOps(OpRegistry& ops) {
  const Tensor paddings = Tensor::Of({2, 2}, {1, 0, 0, 2});
  const auto pad = [&](std::string_view name) {
    return ops.Add(name, PadShape, With<kHostMover, PadKernel>::Run).Grad(PadGrad);
  };
  pad("Pad").Example({Shape{2, 3}, paddings});
  pad("PadV2").Example({Shape{2, 3}, paddings, Shape{}});
  ops.Add("MirrorPad", MirrorPadShape, With<kHostMover, MirrorPadKernel>::Run, {.attrs = {"mode"}})
      .Grad([](GradContext& g) {
        g.dx(0) = MirrorPadGrad(g.dy(0), g.in(1), g.Attr<std::string>("mode"));
      })
      .Example({Shape{2, 3}, paddings}, {{"mode", "REFLECT"}})
      .Example({Shape{2, 3}, paddings}, {{"mode", "SYMMETRIC"}});
  ops.Add("MirrorPadGrad", MirrorPadGradShape, MirrorPadGradOnHost,
          {.types = {{"T", DTypesOf(NumericTypes())}}, .attrs = {"mode"}})
      .Grad([](GradContext& g) {
        g.dx(0) = MirrorPad(g.dy(0), g.in(1), g.Attr<std::string>("mode"));
      })
      .Example({Shape{3, 5}, paddings}, {{"mode", "REFLECT"}})
      .Example({Shape{3, 5}, paddings}, {{"mode", "SYMMETRIC"}});
}

}  // namespace tenon
