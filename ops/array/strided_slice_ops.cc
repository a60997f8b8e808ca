// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/moving_kernels.h"
#include "ops/array/shared_rows.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

template <typename Options>
Options MasksOf(const AttributeMap& attrs) {
  const auto mask = [&](std::string_view name) { return attrs.GetOr<int64_t>(name, 0); };
  return {.begin_mask = mask("begin_mask"),
          .end_mask = mask("end_mask"),
          .ellipsis_mask = mask("ellipsis_mask"),
          .new_axis_mask = mask("new_axis_mask"),
          .shrink_axis_mask = mask("shrink_axis_mask")};
}

/// What a strided slice takes from a tensor whose dimensions may be unknown (-1).
struct SlicePlan {
  DimVector begin, stride;  // per dimension of the input
  DimVector size;           // how many it takes there; -1 when the input's size is unknown
  DimVector out;            // the result's dimensions, with new axes and without shrunk ones
  DimVector place;          // which of these it is, per dimension of the input; -1 when shrunk
};

/// What is said about one dimension; by default, to take it whole.
struct Entry {
  int64_t begin = 0, end = 0, stride = 1;
  bool begin_masked = true, end_masked = true, shrink = false;
};

/// Where one entry puts `x` in a dimension of `size`: from the end when negative, then moved to the
/// nearest place that iteration in the direction of `stride` can reach.
int64_t Clamped(int64_t x, int64_t size, int64_t stride) {
  if (x < 0) x += size;
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? size : size - 1;
  return std::clamp(x, low, high);
}

/// Plans what `e` takes of the next dimension of `dims`.
Status AddDimension(const Entry& e, absl::Span<const int64_t> dims, SlicePlan* plan) {
  const size_t dim = plan->size.size();
  const int64_t size = dims[dim];
  const auto add = [plan](int64_t begin, int64_t stride, int64_t count) {
    plan->begin.push_back(begin);
    plan->stride.push_back(stride);
    plan->size.push_back(count);
  };
  if (e.stride == 0) return InvalidArgument("strides[", dim, "] must be non-zero");
  if (e.shrink) {
    if (e.stride < 0) return InvalidArgument("only stride 1 allowed on non-range indexing.");
    const int64_t at = e.begin < 0 && size >= 0 ? e.begin + size : e.begin;
    if (size >= 0 && (at < 0 || at >= size)) {
      return InvalidArgument("slice index ", e.begin, " of dimension ", dim, " out of bounds.");
    }
    add(at, 1, 1);
    plan->place.push_back(-1);
    return OkStatus();
  }
  int64_t begin = 0, count = PartialShape::kUnknownDim;
  if (size >= 0) {
    const bool forward = e.stride > 0;
    begin = e.begin_masked ? (forward ? 0 : size - 1) : Clamped(e.begin, size, e.stride);
    const int64_t end = e.end_masked ? (forward ? size : -1) : Clamped(e.end, size, e.stride);
    const int64_t interval = end - begin;
    const bool empty = interval == 0 || (interval < 0) == forward;
    count = empty ? 0 : interval / e.stride + (interval % e.stride != 0 ? 1 : 0);
  }
  add(begin, e.stride, count);
  plan->place.push_back(static_cast<int64_t>(plan->out.size()));
  plan->out.push_back(count);
  return OkStatus();
}

/// `dims` is the input's shape, with -1 for unknown dimensions.
StatusOr<SlicePlan> PlanSlice(absl::Span<const int64_t> dims, const Tensor& begin,
                              const Tensor& end, const Tensor& strides, const SliceMasks& masks) {
  TENON_ASSIGN_OR_RETURN(const DimVector b, ReadIntegerVector(begin, "begin"));
  TENON_ASSIGN_OR_RETURN(const DimVector e, ReadIntegerVector(end, "end", b.size()));
  TENON_ASSIGN_OR_RETURN(const DimVector st, ReadIntegerVector(strides, "strides", b.size()));
  if (b.size() > 32) return InvalidArgument("a strided slice has at most 32 entries");
  const auto bit = [](int64_t mask, size_t i) { return ((mask >> i) & 1) != 0; };
  // Entries beyond the ellipsis count from the end; without one it stands behind the last entry.
  size_t ellipsis = b.size();
  int named = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    if (bit(masks.ellipsis_mask, i)) {
      if (ellipsis < i) return InvalidArgument("Multiple ellipses in slice spec not allowed");
      ellipsis = i;
    } else if (!bit(masks.new_axis_mask, i)) {
      ++named;
    }
  }
  const int rank = static_cast<int>(dims.size());
  if (named > rank) {
    return InvalidArgument("the slice names ", named, " dimensions, the input has ", rank);
  }
  SlicePlan plan;
  for (size_t i = 0; i < std::max(b.size(), ellipsis + 1); ++i) {
    if (i == ellipsis) {
      for (int k = named; k < rank; ++k) {
        TENON_RETURN_IF_ERROR(AddDimension({}, dims, &plan));
      }
    } else if (bit(masks.new_axis_mask, i)) {
      plan.out.push_back(1);
    } else {
      TENON_RETURN_IF_ERROR(AddDimension({b[i], e[i], st[i], bit(masks.begin_mask, i),
                                          bit(masks.end_mask, i), bit(masks.shrink_axis_mask, i)},
                                         dims, &plan));
    }
  }
  return plan;
}

/// The part of a tensor of shape `dims` that the plan takes, as StridedCopy sees it.
StridedView ViewOf(const SlicePlan& plan, absl::Span<const int64_t> dims) {
  StridedView view{0, StridesOf(dims)};
  for (size_t i = 0; i < dims.size(); ++i) {
    if (plan.size[i] > 0) view.offset += plan.begin[i] * view.strides[i];
    // A stride is only walked when there are two elements, and then it is within the dimension.
    view.strides[i] *= plan.size[i] > 1 ? plan.stride[i] : 0;
  }
  return view;
}

/// What the kernel's begin, end and strides, inputs 1 to 3, say of a tensor of shape `dims`.
StatusOr<SlicePlan> PlanSlice(const KernelContext& ctx, absl::Span<const int64_t> dims,
                              const SliceMasks& masks) {
  return PlanSlice(dims, ctx.input(1), ctx.input(2), ctx.input(3), masks);
}

/// A value of shape `dims` as StridedCopy sees it when it is broadcast to what the plan takes.
StatusOr<StridedView> BroadcastView(const SlicePlan& plan, absl::Span<const int64_t> dims) {
  const DimVector strides = StridesOf(dims);
  const auto missing = static_cast<int64_t>(plan.out.size()) - static_cast<int64_t>(dims.size());
  bool fits = missing >= 0;
  for (size_t i = 0; i < dims.size() && fits; ++i) {
    fits = dims[i] == 1 || dims[i] == plan.out[missing + i];
  }
  if (!fits) {
    return InvalidArgument("the value has shape ", PartialShape(dims),
                           ", which does not broadcast to that of the slice, ",
                           PartialShape(plan.out));
  }
  StridedView view{0, DimVector(plan.size.size(), 0)};
  for (size_t i = 0; i < plan.place.size(); ++i) {
    const int64_t k = plan.place[i] - missing;
    if (plan.place[i] >= 0 && k >= 0 && dims[k] != 1) view.strides[i] = strides[k];
  }
  return view;
}

/// The part of `in` that the plan takes, sharing its buffer; none where kernels copy that part.
std::optional<Tensor> RowsOf(const SlicePlan& plan, const Tensor& in) {
  const auto dims = in.shape().dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (plan.stride[i] != 1 || (i > 0 && plan.size[i] != dims[i])) return std::nullopt;
  }
  if (dims.empty() || plan.size[0] == dims[0]) return in;
  const int64_t begin = plan.begin[0], end = begin + plan.size[0];
  if (plan.size[0] == 0 || !RowsAreAligned(in, begin, end)) return std::nullopt;
  return in.Slice(begin, end);
}

/// The kernel for a variable, by reference or by handle.
Status StridedSliceAssignKernel(KernelContext& ctx, const SliceMasks& masks,
                                const VariableInput& input) {
  const Tensor& update = ctx.input(4);
  TENON_ASSIGN_OR_RETURN(const auto variable, input.Find(ctx, update.dtype()));
  TENON_RETURN_IF_ERROR(variable->ModifyInPlace([&](Tensor* value) -> Status {
    const Shape shape = value->shape();
    TENON_ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(ctx, shape.dims(), masks));
    TENON_ASSIGN_OR_RETURN(const StridedView source, BroadcastView(plan, update.shape().dims()));
    StridedCopy(update, source, value, ViewOf(plan, shape.dims()), plan.size);
    return OkStatus();
  }));
  if (ctx.num_outputs() > 0) ctx.set_output_ref(0, variable.get());
  return OkStatus();
}

/// In the input's memory where nobody else needs that.
Status TensorStridedSliceUpdateKernel(KernelContext& ctx, const SliceMasks& masks) {
  const Tensor& update = ctx.input(4);
  const Shape shape = ctx.input(0).shape();
  TENON_ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(ctx, shape.dims(), masks));
  TENON_ASSIGN_OR_RETURN(const StridedView source, BroadcastView(plan, update.shape().dims()));
  const void* const before = ctx.input(0).raw_data();
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0, shape));
  if (out->raw_data() != before) {
    CopyElements(out->dtype(), before, out->raw_data(), shape.num_elements());
  }
  StridedCopy(update, source, out, ViewOf(plan, shape.dims()), plan.size);
  return OkStatus();
}

Status StridedSliceShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.rank_known() || c.constant(1) == nullptr || c.constant(2) == nullptr ||
      c.constant(3) == nullptr) {
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(in.dims(), *c.constant(1), *c.constant(2),
                                                         *c.constant(3), SliceMasks(c.attrs())));
  return c.Return(PartialShape(plan.out));
}

Status StridedSliceGradShape(ShapeContext& c) { return c.Return(c.ConstantShape(0)); }

void SliceGradient(GradContext& g) {
  const Output begin = g.in(1);
  if (begin.dtype() == DType::kInt16) {
    return g.Fail(Unimplemented("the gradient of StridedSlice with int16 indices cannot be built"));
  }
  g.dx(0) = StridedSliceGrad(ShapeOf(g.in(0), {.out_type = begin.dtype()}), begin, g.in(2), g.in(3),
                             g.dy(0), MasksOf<StridedSliceGradOptions>(g.node().attrs()));
}

/// The elements that were overwritten have no gradient; that of the value, which was broadcast, is
/// summed.
void SliceUpdateGradient(GradContext& g) {
  const Output begin = g.in(1), end = g.in(2), strides = g.in(3), value = g.in(4);
  const AttributeMap& attrs = g.node().attrs();
  const Output part =
      StridedSlice(g.dy(0), begin, end, strides, MasksOf<StridedSliceOptions>(attrs));
  g.dx(0) = TensorStridedSliceUpdate(g.dy(0), begin, end, strides, ZerosLike(part),
                                     MasksOf<TensorStridedSliceUpdateOptions>(attrs));
  const Output shape = ShapeVector(value);
  const Output repeated = BroadcastGradientArgs(shape, ShapeVector(part)).r0;
  g.dx(4) = Reshape(Sum(part, repeated), shape);
}

void SliceGradGradient(GradContext& g) {
  g.dx(4) = StridedSlice(g.dy(0), g.in(1), g.in(2), g.in(3),
                         MasksOf<StridedSliceOptions>(g.node().attrs()));
}

}  // namespace

SliceMasks::SliceMasks(const AttributeMap& attrs) {
  const std::pair<const char*, int64_t*> all[] = {{"begin_mask", &begin_mask},
                                                  {"end_mask", &end_mask},
                                                  {"ellipsis_mask", &ellipsis_mask},
                                                  {"new_axis_mask", &new_axis_mask},
                                                  {"shrink_axis_mask", &shrink_axis_mask}};
  for (const auto& [name, mask] : all) *mask = attrs.GetOr<int64_t>(name, 0);
}

Status StridedSliceKernel(KernelContext& ctx, const Mover& mover, const SliceMasks& masks) {
  const Tensor& in = ctx.input(0);
  const auto dims = in.shape().dims();
  TENON_ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(ctx, dims, masks));
  if (const std::optional<Tensor> rows = RowsOf(plan, in)) {
    return ctx.Return(rows->Reshaped(Shape(plan.out)));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, plan.out));
  return mover.copy(ctx, in, ViewOf(plan, dims), out, {0, StridesOf(plan.size)}, plan.size);
}

Status StridedSliceGradKernel(KernelContext& ctx, const Mover& mover, const SliceMasks& masks) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
  TENON_ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(ctx, shape.dims(), masks));
  const Tensor& dy = ctx.input(4);
  if (dy.shape().dims() != absl::Span<const int64_t>(plan.out)) {
    return InvalidArgument("shape of dy was ", dy.shape(), " instead of ", PartialShape(plan.out));
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  TENON_RETURN_IF_ERROR(mover.zero(ctx, out));
  return mover.copy(ctx, dy, {0, StridesOf(plan.size)}, out, ViewOf(plan, shape.dims()), plan.size);
}

void RegisterStridedSliceOps(OpRegistry& ops) {
  ops.Add("StridedSlice", StridedSliceShape, With<kHostMover, StridedSliceKernel>::Run)
      .Grad(SliceGradient)
      .Example(
          {Shape{4, 5}, Tensor::Vector({-1, 1}), Tensor::Vector({0, 4}), Tensor::Vector({-2, 2})})
      .Example({Shape{4, 3, 5}, Tensor::Vector({0, 0, 2}), Tensor::Vector({0, 0, 3}),
                Tensor::Vector({1, 1, 1})},
               {{"ellipsis_mask", 1}, {"new_axis_mask", 2}, {"shrink_axis_mask", 4}});
  ops.Add("StridedSliceGrad", StridedSliceGradShape, With<kHostMover, StridedSliceGradKernel>::Run)
      .Grad(SliceGradGradient)
      .Example({Tensor::Vector({4, 5}), Tensor::Vector({-1, 1}), Tensor::Vector({0, 4}),
                Tensor::Vector({-2, 2}), Shape{2, 2}});
  ops.Add("TensorStridedSliceUpdate", UnchangedShape, TensorStridedSliceUpdateKernel)
      .Grad(SliceUpdateGradient)
      .Example({Shape{4, 5}, Tensor::Vector({-1, 1}), Tensor::Vector({0, 4}),
                Tensor::Vector({-2, 2}), Shape{2, 2}})
      .Example({Shape{3, 4}, Tensor::Vector({0, 1}), Tensor::Vector({0, 3}), Tensor::Vector({1, 1}),
                Shape{2}},
               {{"begin_mask", 1}, {"end_mask", 1}});
  ops.Add("StridedSliceAssign", UnchangedShape, StridedSliceAssignKernel)
      .NoExample("needs a variable; strided_slice_assign_test covers it");
  ops.Add("ResourceStridedSliceAssign", NoOutputShape, StridedSliceAssignKernel)
      .NoExample("needs a variable; strided_slice_assign_test covers it");
}

}  // namespace tenon
