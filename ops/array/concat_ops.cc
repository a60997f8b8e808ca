// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/array/register.h"

namespace tenon {
namespace {

/// Joins inputs [first, last) along `axis`; for each of the `outer` places before the axis one run
/// of every input follows the other.
Status JoinInputs(KernelContext& ctx, int first, int last, int64_t outer, const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return OkStatus();
  const DType type = out->dtype();
  int64_t at = 0;
  const int64_t row = out->num_elements() / outer;
  for (int i = first; i < last; ++i) {
    const Tensor& in = ctx.input(i);
    const int64_t run = in.num_elements() / outer;
    for (int64_t o = 0; o < outer; ++o) {
      if (o % kStepsBetweenLooks == 0 && Interrupted()) break;
      CopyElements(type, ElementAt(in, o * run), ElementAt(*out, o * row + at), run);
    }
    at += run;
  }
  return OkStatus();
}

/// Concat takes the axis first, ConcatV2 last.
template <bool kAxisFirst>
Status ConcatKernel(KernelContext& ctx) {
  const int first = kAxisFirst ? 1 : 0;
  const int last = first + ctx.num_inputs() - 1;
  const Tensor& axis_input = ctx.input(kAxisFirst ? 0 : last);
  const Shape& shape0 = ctx.input(first).shape();
  TENON_ASSIGN_OR_RETURN(const int64_t found, ReadOnlyInteger(axis_input, "axis"));
  if (found < -shape0.rank() || found >= shape0.rank()) {
    return InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [",
                           -shape0.rank(), ", ", shape0.rank(), "), but got ", found);
  }
  const int axis = static_cast<int>(found < 0 ? found + shape0.rank() : found);
  int64_t size = 0;
  for (int i = first; i < last; ++i) {
    const Shape& shape = ctx.input(i).shape();
    if (shape.rank() != shape0.rank()) {
      return InvalidArgument("ConcatOp : Ranks of all input tensors should match: shape[0] = ",
                             shape0.ToString(), " vs. shape[", i - first, "] = ", shape.ToString());
    }
    for (int d = 0; d < shape.rank(); ++d) {
      if (d == axis || shape.dim(d) == shape0.dim(d)) continue;
      return InvalidArgument("ConcatOp : Dimension ", d,
                             " in both shapes must be equal: shape[0] = ", shape0.ToString(),
                             " vs. shape[", i - first, "] = ", shape.ToString());
    }
    TENON_ASSIGN_OR_RETURN(size, AddSizes(size, shape.dim(axis)));
  }
  DimVector dims(shape0.dims().begin(), shape0.dims().end());
  dims[axis] = size;
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  return JoinInputs(ctx, first, last, Product(dims, 0, axis), shape);
}

template <bool kAxisFirst>
Status ConcatShape(ShapeContext& c) {
  const int first = kAxisFirst ? 1 : 0;
  const int last = first + c.num_inputs() - 1;
  const Tensor* axis_value = c.constant(kAxisFirst ? 0 : last);
  int rank = -1;
  for (int i = first; i < last && rank < 0; ++i) rank = c.input(i).rank();
  if (rank < 0) return OkStatus();
  if (axis_value == nullptr) {
    c.set_output(0, PartialShape::OfRank(rank));
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(*axis_value, rank, "axis"));
  PartialShape merged = PartialShape::OfRank(rank);
  int64_t size = 0;
  for (int i = first; i < last; ++i) {
    const PartialShape& in = c.input(i);
    const int64_t d = in.rank() == rank ? in.dim(axis) : PartialShape::kUnknownDim;
    if (size < 0 || d < 0) {
      size = PartialShape::kUnknownDim;
    } else {
      TENON_ASSIGN_OR_RETURN(size, AddSizes(size, d));
    }
    if (!in.rank_known()) continue;
    DimVector dims(in.dims().begin(), in.dims().end());
    if (in.rank() == rank) dims[axis] = -1;
    TENON_ASSIGN_OR_RETURN(merged, merged.MergeWith(PartialShape(dims)));
  }
  DimVector dims(merged.dims().begin(), merged.dims().end());
  dims[axis] = size;
  c.set_output(0, PartialShape(dims));
  return OkStatus();
}

/// Each input gets its slice of dy, found with ConcatOffset so that shapes may be unknown.
template <bool kAxisFirst>
void ConcatGrad(GradContext& g) {
  const int first = kAxisFirst ? 1 : 0;
  const int last = first + g.num_inputs() - 1;
  Output axis = g.in(kAxisFirst ? 0 : last);
  if (axis.dtype() != DType::kInt32) {
    axis = Cast(axis, DType::kInt32);
  }
  std::vector<Output> values;
  for (int i = first; i < last; ++i) values.push_back(g.in(i));
  const std::vector<Output> shapes = ShapeN(values);
  const std::vector<Output> offsets = ConcatOffset(axis, shapes);
  for (size_t i = 0; i < offsets.size(); ++i) {
    g.dx(first + i) = Slice(g.dy(0), offsets[i], shapes[i]);
  }
}

Status ConcatOffsetKernel(KernelContext& ctx) {
  const int n = ctx.num_inputs() - 1;
  TENON_ASSIGN_OR_RETURN(const DimVector first, ReadIntegerVector(ctx.input(1), "shape"));
  TENON_ASSIGN_OR_RETURN(const int axis,
                         ReadAxis(ctx.input(0), static_cast<int>(first.size()), "concat_dim"));
  int64_t offset = 0;
  for (int i = 0; i < n; ++i) {
    TENON_ASSIGN_OR_RETURN(const DimVector dims, ReadIntegerVector(ctx.input(i + 1), "shape"));
    if (dims.size() != first.size()) {
      return InvalidArgument("input ", i, " should contain ", first.size(), " elements, but got ",
                             dims.size());
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (static_cast<int>(d) == axis || dims[d] == first[d]) continue;
      return InvalidArgument("All dimensions except ", axis, " must match. Input ", i,
                             " has shape [", Join(dims, " "),
                             "] and doesn't match input 0 with "
                             "shape [",
                             Join(first, " "), "].");
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out,
                           ctx.AllocateOutput(i, {static_cast<int64_t>(dims.size())}));
    ZeroElements(out);
    if (out->dtype() == DType::kInt64) {
      out->data<int64_t>()[axis] = offset;
    } else if (offset != static_cast<int32_t>(offset)) {
      return InvalidArgument("offset ", offset, " of input ", i, " does not fit in int32");
    } else {
      out->data<int32_t>()[axis] = static_cast<int32_t>(offset);
    }
    if (__builtin_add_overflow(offset, dims[axis], &offset)) {
      return InvalidArgument("the sizes along axis ", axis, " overflow");
    }
  }
  return OkStatus();
}

Status ConcatOffsetShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    TENON_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(i + 1, 1));
    c.set_output(i, std::move(shape));
  }
  return OkStatus();
}

class PackKernel final : public Kernel {
 public:
  explicit PackKernel(KernelConstruction& c) : Kernel(c), axis_(c.Attr<int64_t>("axis")) {}
  Status Compute(KernelContext& ctx) const override {
    const Shape& shape = ctx.input(0).shape();
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      if (ctx.input(i).shape() == shape) continue;
      return InvalidArgument(
          "Shapes of all inputs must match: values[0].shape = ", shape.ToString(), " != values[", i,
          "].shape = ", ctx.input(i).shape().ToString());
    }
    TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_, shape.rank() + 1, "axis"));
    DimVector dims(shape.dims().begin(), shape.dims().end());
    dims.insert(dims.begin() + axis, ctx.num_inputs());
    TENON_ASSIGN_OR_RETURN(const Shape packed, Shape::Create(dims));
    return JoinInputs(ctx, 0, ctx.num_inputs(), Product(dims, 0, axis), packed);
  }

 private:
  const int64_t axis_;
};

Status PackShape(ShapeContext& c) {
  PartialShape merged;
  for (int i = 0; i < c.num_inputs(); ++i) {
    TENON_ASSIGN_OR_RETURN(merged, merged.MergeWith(c.input(i)));
  }
  if (!merged.rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const int64_t wanted, c.Attr<int64_t>("axis"));
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(wanted, merged.rank() + 1, "axis"));
  DimVector dims(merged.dims().begin(), merged.dims().end());
  dims.insert(dims.begin() + axis, c.num_inputs());
  TENON_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Create(dims));
  c.set_output(0, std::move(out));
  return OkStatus();
}

void PackGrad(GradContext& g) {
  g.dxs() = Unpack(g.dy(0), g.num_inputs(), {.axis = g.Attr<int64_t>("axis", 0)});
}

template <bool kAxisFirst>
void AddConcat(OpRegistry& ops) {
  OpBuilder op = ops.Get(kAxisFirst ? "Concat" : "ConcatV2");
  const Tensor axis = Tensor::Scalar<int32_t>(-1);
  op.Shape(ConcatShape<kAxisFirst>)
      .Kernel(kCpu, ConcatKernel<kAxisFirst>, {.host_args = {kAxisFirst ? "concat_dim" : "axis"}})
      .Grad(ConcatGrad<kAxisFirst>);
  if (kAxisFirst) {
    op.Example({axis, Shape{2, 3}, Shape{2, 2}}, {{"N", 2}});
  } else {
    op.Example({Shape{2, 3}, Shape{2, 2}, axis}, {{"N", 2}});
  }
}

}  // namespace

void RegisterConcatOps(OpRegistry& ops) {
  AddConcat<true>(ops);
  AddConcat<false>(ops);
  ops.Get("ConcatOffset")
      .Shape(ConcatOffsetShape)
      .Kernel(kCpu, ConcatOffsetKernel, {.host_args = {"concat_dim", "shape", "offset"}})
      .NotDifferentiable()
      .Example({Tensor::Scalar<int32_t>(1), Tensor::Vector<int32_t>({2, 3}),
                Tensor::Vector<int32_t>({2, 5})},
               {{"N", 2}});
  ops.Get("Pack")
      .Shape(PackShape)
      .Kernel<PackKernel>(kCpu)
      .Grad(PackGrad)
      .Example({Shape{2, 3}, Shape{2, 3}}, {{"N", 2}, {"axis", -1}});
}

}  // namespace tenon
