// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/array/register.h"
#include "ops/array/strided_copy.h"
#include "ops/state/variables.h"

namespace tenon {
namespace {

/// The bit masks: bit i is about entry i of begin, end and strides.
struct StridedSliceMasks {
  int64_t begin = 0;        // ignore begin[i]: from the edge
  int64_t end = 0;          // ignore end[i]: to the edge
  int64_t ellipsis = 0;     // entry i stands for all dimensions not named
  int64_t new_axis = 0;     // entry i inserts a dimension of size 1
  int64_t shrink_axis = 0;  // entry i takes one element and drops the dimension
};

StridedSliceMasks MasksOf(const AttributeMap& attrs) {
  const auto mask = [&](std::string_view name) { return attrs.GetOr<int64_t>(name, 0); };
  return {mask("begin_mask"), mask("end_mask"), mask("ellipsis_mask"), mask("new_axis_mask"),
          mask("shrink_axis_mask")};
}

/// What a strided slice takes from a tensor whose dimensions may be unknown (-1).
struct SlicePlan {
  DimVector begin, stride;  // per dimension of the input
  DimVector size;           // how many it takes there; -1 when the input's size is unknown
  DimVector out;            // the result's dimensions, with new axes and without shrunk ones
};

struct Entry {
  int64_t begin, end, stride;
  bool begin_masked, end_masked, shrink;
};

/// Where one entry puts `x` in a dimension of `size`: from the end when negative, then moved to the
/// nearest place that iteration in the direction of `stride` can reach.
int64_t Clamped(int64_t x, int64_t size, int64_t stride) {
  if (x < 0) x += size;
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? size : size - 1;
  return std::clamp(x, low, high);
}

Status AddDimension(const Entry& e, int64_t size, SlicePlan* plan) {
  const size_t dim = plan->size.size();
  if (e.stride == 0) return InvalidArgument("strides[", dim, "] must be non-zero");
  if (e.shrink) {
    if (e.stride < 0) return InvalidArgument("only stride 1 allowed on non-range indexing.");
    const int64_t at = e.begin < 0 && size >= 0 ? e.begin + size : e.begin;
    if (size >= 0 && (at < 0 || at >= size)) {
      return InvalidArgument("slice index ", e.begin, " of dimension ", dim, " out of bounds.");
    }
    plan->begin.push_back(at);
    plan->stride.push_back(1);
    plan->size.push_back(1);
    return OkStatus();
  }
  plan->stride.push_back(e.stride);
  if (size < 0) {
    plan->begin.push_back(0);
    plan->size.push_back(-1);
    plan->out.push_back(-1);
    return OkStatus();
  }
  const bool forward = e.stride > 0;
  const int64_t begin =
      e.begin_masked ? (forward ? 0 : size - 1) : Clamped(e.begin, size, e.stride);
  const int64_t end = e.end_masked ? (forward ? size : -1) : Clamped(e.end, size, e.stride);
  const int64_t interval = end - begin;
  int64_t count = 0;
  if (interval != 0 && (interval < 0) == (e.stride < 0)) {
    count = interval / e.stride + (interval % e.stride != 0 ? 1 : 0);
  }
  plan->begin.push_back(begin);
  plan->size.push_back(count);
  plan->out.push_back(count);
  return OkStatus();
}

/// `dims` is the input's shape, with -1 for unknown dimensions.
StatusOr<SlicePlan> PlanSlice(absl::Span<const int64_t> dims, const Tensor& begin,
                              const Tensor& end, const Tensor& strides,
                              const StridedSliceMasks& masks) {
  TENON_ASSIGN_OR_RETURN(const DimVector b, ReadIntegerVector(begin, "begin"));
  TENON_ASSIGN_OR_RETURN(const DimVector e, ReadIntegerVector(end, "end"));
  TENON_ASSIGN_OR_RETURN(const DimVector st, ReadIntegerVector(strides, "strides"));
  if (b.size() != e.size() || b.size() != st.size()) {
    return InvalidArgument(
        "Expected begin, end, and strides to be 1D equal size tensors, but got "
        "shapes [",
        b.size(), "], [", e.size(), "], and [", st.size(), "] instead.");
  }
  if (b.size() > 32) return InvalidArgument("a strided slice has at most 32 entries");
  const auto bit = [](int64_t mask, size_t i) { return ((mask >> i) & 1) != 0; };
  // Entries beyond the ellipsis count from the end; without one it stands behind the last entry.
  size_t ellipsis = b.size();
  int named = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    if (bit(masks.ellipsis, i)) {
      if (ellipsis != b.size()) {
        return InvalidArgument("Multiple ellipses in slice spec not allowed");
      }
      ellipsis = i;
    } else if (!bit(masks.new_axis, i)) {
      ++named;
    }
  }
  const int rank = static_cast<int>(dims.size());
  if (named > rank) {
    return InvalidArgument("Index out of range using input dim ", rank, "; input has only ", rank,
                           " dims");
  }
  SlicePlan plan;
  const auto next_size = [&] { return dims[plan.size.size()]; };
  const Entry everything{0, 0, 1, true, true, false};
  const auto expand = [&]() -> Status {
    for (int k = named; k < rank; ++k) {
      TENON_RETURN_IF_ERROR(AddDimension(everything, next_size(), &plan));
    }
    return OkStatus();
  };
  for (size_t i = 0; i < b.size(); ++i) {
    if (i == ellipsis) {
      TENON_RETURN_IF_ERROR(expand());
    } else if (bit(masks.new_axis, i)) {
      plan.out.push_back(1);
    } else {
      TENON_RETURN_IF_ERROR(AddDimension(
          {b[i], e[i], st[i], bit(masks.begin, i), bit(masks.end, i), bit(masks.shrink_axis, i)},
          next_size(), &plan));
    }
  }
  if (ellipsis == b.size()) TENON_RETURN_IF_ERROR(expand());
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

class StridedSliceKernel final : public Kernel {
 public:
  explicit StridedSliceKernel(KernelConstruction& c) : Kernel(c), masks_(MasksOf(c.attrs())) {}
  Status Compute(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    TENON_ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(in.shape().dims(), ctx.input(1),
                                                           ctx.input(2), ctx.input(3), masks_));
    TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(plan.out));
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    StridedCopy(in, ViewOf(plan, in.shape().dims()), out, {0, StridesOf(plan.size)}, plan.size);
    return OkStatus();
  }
  bool is_expensive() const override { return true; }

 private:
  const StridedSliceMasks masks_;
};

class StridedSliceGradKernel final : public Kernel {
 public:
  explicit StridedSliceGradKernel(KernelConstruction& c) : Kernel(c), masks_(MasksOf(c.attrs())) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(0), "shape"));
    TENON_ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(shape.dims(), ctx.input(1), ctx.input(2),
                                                           ctx.input(3), masks_));
    const Tensor& dy = ctx.input(4);
    if (!(dy.shape().dims() == absl::Span<const int64_t>(plan.out))) {
      return InvalidArgument("shape of dy was ", dy.shape().ToString(), " instead of ",
                             PartialShape(plan.out).ToString());
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    ZeroElements(out);
    StridedCopy(dy, {0, StridesOf(plan.size)}, out, ViewOf(plan, shape.dims()), plan.size);
    return OkStatus();
  }

 private:
  const StridedSliceMasks masks_;
};

class StridedSliceAssignKernel final : public Kernel {
 public:
  explicit StridedSliceAssignKernel(KernelConstruction& c)
      : Kernel(c), masks_(MasksOf(c.attrs())) {}
  Status Compute(KernelContext& ctx) const override {
    TENON_ASSIGN_OR_RETURN(const std::shared_ptr<VariableResource> variable,
                           variable_.Find(ctx, ctx.input(4).dtype()));
    TENON_RETURN_IF_ERROR(variable->ModifyInPlace([&](Tensor* value) -> Status {
      const Shape shape = value->shape();
      TENON_ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(shape.dims(), ctx.input(1),
                                                             ctx.input(2), ctx.input(3), masks_));
      const Tensor& update = ctx.input(4);
      StridedView source{0, StridesOf(plan.size)};
      if (update.rank() == 0) {
        source.strides.assign(plan.size.size(), 0);
      } else if (!(update.shape().dims() == absl::Span<const int64_t>(plan.out))) {
        return InvalidArgument("the value has shape ", update.shape().ToString(), ", the slice ",
                               PartialShape(plan.out).ToString());
      }
      StridedCopy(update, source, value, ViewOf(plan, shape.dims()), plan.size);
      return OkStatus();
    }));
    ctx.set_output_ref(0, variable.get());
    return OkStatus();
  }

 private:
  const StridedSliceMasks masks_;
  VariableInput variable_;
};

Status StridedSliceShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.rank_known() || c.constant(1) == nullptr || c.constant(2) == nullptr ||
      c.constant(3) == nullptr) {
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const SlicePlan plan, PlanSlice(in.dims(), *c.constant(1), *c.constant(2),
                                                         *c.constant(3), MasksOf(c.attrs())));
  TENON_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Create(plan.out));
  c.set_output(0, std::move(out));
  return OkStatus();
}

Status StridedSliceGradShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(PartialShape shape, c.ConstantShape(0));
  c.set_output(0, std::move(shape));
  return OkStatus();
}

void SliceGradient(GradContext& g) {
  const Output begin = g.in(1), end = g.in(2), strides = g.in(3);
  if (begin.dtype() == DType::kInt16) {
    return g.Fail(Unimplemented("the gradient of StridedSlice with int16 indices cannot be built"));
  }
  const Output shape = ShapeOf(g.in(0), {.out_type = begin.dtype()});
  const StridedSliceMasks masks = MasksOf(g.node().attrs());
  g.dx(0) = StridedSliceGrad(shape, begin, end, strides, g.dy(0),
                             {.begin_mask = masks.begin,
                              .end_mask = masks.end,
                              .ellipsis_mask = masks.ellipsis,
                              .new_axis_mask = masks.new_axis,
                              .shrink_axis_mask = masks.shrink_axis});
}

void SliceGradGradient(GradContext& g) {
  const StridedSliceMasks masks = MasksOf(g.node().attrs());
  g.dx(4) = StridedSlice(g.dy(0), g.in(1), g.in(2), g.in(3),
                         {.begin_mask = masks.begin,
                          .end_mask = masks.end,
                          .ellipsis_mask = masks.ellipsis,
                          .new_axis_mask = masks.new_axis,
                          .shrink_axis_mask = masks.shrink_axis});
}

Tensor Indices(std::initializer_list<int32_t> values) { return Tensor::Vector(values); }

}  // namespace

void RegisterStridedSliceOps(OpRegistry& ops) {
  ops.Get("StridedSlice")
      .Shape(StridedSliceShape)
      .Kernel<StridedSliceKernel>(kCpu, {.host_args = {"begin", "end", "strides"}})
      .Grad(SliceGradient)
      .Example({Shape{4, 5}, Indices({-1, 1}), Indices({0, 4}), Indices({-2, 2})})
      .Example({Shape{4, 3, 5}, Indices({0, 0, 2}), Indices({0, 0, 3}), Indices({1, 1, 1})},
               {{"ellipsis_mask", 1}, {"new_axis_mask", 2}, {"shrink_axis_mask", 4}});
  ops.Get("StridedSliceGrad")
      .Shape(StridedSliceGradShape)
      .Kernel<StridedSliceGradKernel>(kCpu, {.host_args = {"shape", "begin", "end", "strides"}})
      .Grad(SliceGradGradient)
      .Example({Indices({4, 5}), Indices({-1, 1}), Indices({0, 4}), Indices({-2, 2}), Shape{2, 2}});
  ops.Get("StridedSliceAssign")
      .Shape(UnchangedShape)
      .Kernel<StridedSliceAssignKernel>(kCpu, {.host_args = {"begin", "end", "strides"}})
      .NoExample("needs a variable; strided_slice_ops_test covers it");
}

}  // namespace tenon
