// SPDX-License-Identifier: Apache-2.0
#include "absl/container/inlined_vector.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/moving_kernels.h"
#include "ops/composition.h"
#include "ops/elements.h"

namespace tenon {
namespace {

/// Joins inputs [first, last) along `axis` of `shape`, that of the result.
Status JoinInputs(KernelContext& ctx, const Mover& mover, int first, int last, int axis,
                  const Shape& shape) {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, shape.dims()));
  if (out->num_elements() == 0) return OkStatus();
  // For each place before the axis one run of every input follows the other.
  const int64_t rows = Product(shape.dims(), 0, axis);
  absl::InlinedVector<JoinedArray, 8> arrays;
  for (int i = first; i < last; ++i) {
    arrays.push_back({&ctx.input(i), ctx.input(i).num_elements() / rows});
  }
  return mover.join(ctx, arrays, rows, out);
}

/// What a Concat calls its axis when it is wrong.
constexpr char kAxisName[] = "concatenating dimensions";

/// Which inputs of a Concat hold what.
struct ConcatInputs {
  int axis, first, last;
};
/// Concat takes the axis first, ConcatV2 last.
template <bool kAxisFirst>
ConcatInputs InputsOf(int n) {
  return kAxisFirst ? ConcatInputs{0, 1, n} : ConcatInputs{n - 1, 0, n - 1};
}

template <bool kAxisFirst>
Status ConcatAlong(KernelContext& ctx, const Mover& mover) {
  const auto [axis_input, first, last] = InputsOf<kAxisFirst>(ctx.num_inputs());
  const Shape& shape0 = ctx.input(first).shape();
  TENON_ASSIGN_OR_RETURN(const int64_t wanted, ReadOnlyInteger(ctx.input(axis_input), kAxisName));
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(wanted, shape0.rank(), kAxisName));
  int64_t size = 0;
  for (int i = first; i < last; ++i) {
    const Shape& shape = ctx.input(i).shape();
    bool fits = shape.rank() == shape0.rank();
    for (int d = 0; d < shape.rank() && fits; ++d) {
      fits = d == axis || shape.dim(d) == shape0.dim(d);
    }
    if (!fits) {
      return InvalidArgument("ConcatOp : Dimensions of inputs should match but for dimension ",
                             axis, ": shape[0] = ", shape0, " vs. shape[", i - first,
                             "] = ", shape);
    }
    TENON_ASSIGN_OR_RETURN(size, AddSizes(size, shape.dim(axis)));
  }
  return JoinInputs(ctx, mover, first, last, axis, shape0.WithDim(axis, size));
}

template <bool kAxisFirst>
Status ConcatShape(ShapeContext& c) {
  const auto [axis_input, first, last] = InputsOf<kAxisFirst>(c.num_inputs());
  int rank = -1;
  for (int i = first; i < last && rank < 0; ++i) rank = c.input(i).rank();
  PartialShape merged = PartialShape::OfRank(rank);
  TENON_ASSIGN_OR_RETURN(const auto axis, ReadAxis(c, axis_input, rank, kAxisName));
  if (!axis) return c.Return(merged);
  int64_t size = 0;
  for (int i = first; i < last; ++i) {
    const PartialShape& in = c.input(i);
    TENON_ASSIGN_OR_RETURN(merged, merged.MergeWith(in.rank() == rank ? in.WithDim(axis, -1) : in));
    if (size < 0 || in.dim(*axis) < 0) {
      size = PartialShape::kUnknownDim;
    } else {
      TENON_ASSIGN_OR_RETURN(size, AddSizes(size, in.dim(*axis)));
    }
  }
  return c.Return(merged.WithDim(axis, size));
}

/// Each input gets its slice of dy, found with ConcatOffset so that shapes may be unknown.
template <bool kAxisFirst>
void ConcatGrad(GradContext& g) {
  const auto [axis_input, first, last] = InputsOf<kAxisFirst>(g.num_inputs());
  Output axis = g.in(axis_input);
  if (axis.dtype() != DType::kInt32) axis = Cast(axis, DType::kInt32);
  std::vector<Output> values;
  for (int i = first; i < last; ++i) values.push_back(g.in(i));
  const std::vector<Output> shapes = ShapeN(values);
  const std::vector<Output> offsets = ConcatOffset(axis, shapes);
  for (size_t i = 0; i < offsets.size(); ++i) {
    g.dx(first + i) = Slice(g.dy(0), offsets[i], shapes[i]);
  }
}

Status ConcatOffsetKernel(KernelContext& ctx, Integer concat_dim) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const Shape& shape = ctx.input(i + 1).shape();
    if (shape.rank() == 1) continue;
    return InvalidArgument("input ", i, " should be a vector, but got shape ", shape);
  }
  TENON_ASSIGN_OR_RETURN(const DimVector first, ReadIntegerVector(ctx.input(1), "input 0"));
  const auto rank = static_cast<int64_t>(first.size());
  if (concat_dim < -rank || concat_dim >= rank) {
    return InvalidArgument("Concat dim is out of range: ", concat_dim.value, " vs. ", rank);
  }
  const auto axis = static_cast<int>(concat_dim < 0 ? concat_dim + rank : concat_dim);
  DimVector offsets(first.size(), 0);
  int64_t& offset = offsets[axis];
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    TENON_ASSIGN_OR_RETURN(const DimVector dims,
                           ReadIntegerVector(ctx.input(i + 1), StrCat("input ", i)));
    if (dims.size() != first.size()) {
      return InvalidArgument("input ", i, " should contain ", rank, " elements, found ",
                             dims.size());
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (static_cast<int>(d) == axis || dims[d] == first[d]) continue;
      return InvalidArgument("All dimensions except ", axis, " must match. Input ", i,
                             " has shape [", Join(dims, " "),
                             "] and doesn't match input 0 with shape [", Join(first, " "), "].");
    }
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, ctx.input(1).shape()));
    if (out->dtype() == DType::kInt32 && offset != static_cast<int32_t>(offset)) {
      return InvalidArgument("offset ", offset, " of input ", i, " does not fit in int32");
    }
    WriteIntegers(offsets, out);
    if (__builtin_add_overflow(offset, dims[axis], &offset)) {
      return InvalidArgument("the sizes along axis ", axis, " overflow");
    }
  }
  return OkStatus();
}

Status ConcatOffsetShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    // Another rank is an error of the kernel.
    c.set_output(i, c.input(i + 1).rank() == 1 ? c.input(i + 1) : PartialShape::OfRank(1));
  }
  return OkStatus();
}

Status PackShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape merged, c.Merged());
  if (!merged.rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const auto axis, AxisAttr(c, "axis", merged.rank() + 1));
  return c.Return(merged.WithInsertedDim(axis, c.num_inputs()));
}

void PackGrad(GradContext& g) {
  const auto parts = Unpack(g.dy(0), g.num_inputs(), {.axis = g.Attr<int64_t>("axis")});
  for (int i = 0; i < g.num_inputs(); ++i) g.dx(i) = parts[i];
}

}  // namespace

Status ConcatKernel(KernelContext& ctx, const Mover& mover) {
  return ConcatAlong<true>(ctx, mover);
}

Status ConcatV2Kernel(KernelContext& ctx, const Mover& mover) {
  return ConcatAlong<false>(ctx, mover);
}

Status PackKernel(KernelContext& ctx, const Mover& mover, int64_t axis_attr) {
  const int n = ctx.num_inputs();
  const Shape& shape = ctx.input(0).shape();
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).shape() == ctx.input(0).shape()) continue;
    return InvalidArgument(
        "Shapes of all inputs must match: values[0].shape = ", ctx.input(0).shape(), " != values[",
        i, "].shape = ", ctx.input(i).shape());
  }
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axis_attr, shape.rank() + 1, "axis"));
  if (n == 1) return ctx.Return(ctx.input(0).Reshaped(shape.WithInsertedDim(axis, 1)));
  return JoinInputs(ctx, mover, 0, n, axis, shape.WithInsertedDim(axis, n));
}

void RegisterConcatOps(OpRegistry& ops) {
  const Tensor axis = Tensor::Scalar(-1);
  ops.Add("Concat", ConcatShape<true>, With<kHostMover, ConcatKernel>::Run)
      .Grad(ConcatGrad<true>)
      .Example({axis, Shape{2, 3}, Shape{2, 2}}, {{"N", 2}});
  ops.Add("ConcatV2", ConcatShape<false>, With<kHostMover, ConcatV2Kernel>::Run)
      .Grad(ConcatGrad<false>)
      .Example({Shape{2, 3}, Shape{2, 2}, axis}, {{"N", 2}});
  ops.Add("ConcatOffset", ConcatOffsetShape, ConcatOffsetKernel)
      .Example({Tensor::Scalar(1), Tensor::Vector({2, 3}), Tensor::Vector({2, 5})}, {{"N", 2}});
  ops.Add("Pack", PackShape, With<kHostMover, PackKernel>::Run, {.attrs = {"axis"}})
      .ShapeValue([](const ShapeContext& c) -> StatusOr<PartialShape> {
        DimVector dims;
        for (int i = 0; i < c.num_inputs(); ++i) dims.push_back(c.ConstantInteger(i));
        return PartialShape::Create(dims);
      })
      .Grad(PackGrad)
      .Example({Shape{2, 3}, Shape{2, 3}}, {{"N", 2}, {"axis", -1}});
}

}  // namespace tenon
