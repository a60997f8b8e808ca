// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/array/moving_kernels.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// Each of `dims`, of which some may be unknown (-1), so many times.
StatusOr<DimVector> TiledDims(absl::Span<const int64_t> dims, absl::Span<const int64_t> times) {
  DimVector tiled(dims.begin(), dims.end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (times[i] < 0) return InvalidArgument("multiples[", i, "] is negative: ", times[i]);
    if (dims[i] < 0) continue;
    TENON_ASSIGN_OR_RETURN(tiled[i], MultiplySizes(dims[i], times[i]));
  }
  return tiled;
}

Status TileShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (c.constant(1) == nullptr) return c.Return(PartialShape::OfRank(in.rank()));
  TENON_ASSIGN_OR_RETURN(const DimVector times,
                         ReadIntegerVector(*c.constant(1), "multiples", in.rank()));
  const DimVector unknown(times.size(), PartialShape::kUnknownDim);
  TENON_ASSIGN_OR_RETURN(const DimVector dims,
                         TiledDims(in.rank_known() ? in.dims() : unknown, times));
  return c.Return(PartialShape(dims));
}

/// dy seen as [times0, dim0, times1, dim1, ...] and added up over the repetitions.
void TileGrad(GradContext& g) {
  const Output multiples = g.in(1);
  const Output shape = ShapeOf(g.in(0), {.out_type = multiples.dtype()});
  const Output pairs = Reshape(Pack({multiples, shape}, {.axis = 1}), {-1});
  const Output repetitions = Range(0, Size(pairs), 2);
  g.dx(0) = Reshape(Sum(Reshape(g.dy(0), pairs), repetitions), shape);
}

/// Each repetition of an output element is added to it in turn.
Status TileGradKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(const DimVector times,
                         ReadIntegerVector(ctx.input(1), "multiples", in.rank()));
  DimVector dims(in.rank());
  for (int i = 0; i < in.rank(); ++i) {
    if (times[i] <= 0 || in.dim(i) % times[i] != 0) {
      return InvalidArgument("Expected input_dim to be divisible by multiples[", i, "], but ",
                             in.dim(i), " is not divisible by ", times[i]);
    }
    dims[i] = in.dim(i) / times[i];
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  ZeroElements(out);
  const DimVector in_strides = StridesOf(in.shape().dims()), strides = StridesOf(dims);
  return DispatchStatus(in.dtype(), NumericTypes(), [&]<typename T>(T) {
    const T* from = in.data<T>();
    T* to = out->data<T>();
    SerialFor(in.num_elements(), 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t place = 0;
        for (int d = 0; d < in.rank(); ++d) {
          place += i / in_strides[d] % in.dim(d) % dims[d] * strides[d];
        }
        using C = ComputeType<T>;
        to[place] = T(Plus(C(to[place]), C(from[i])));
      }
    });
  });
}

Status TileGradShape(ShapeContext& c) { return c.Return(PartialShape::OfRank(c.input(0).rank())); }

/// A vector that must hold each of 0 .. n-1 once.
StatusOr<DimVector> ReadPermutation(const Tensor& t, int64_t n) {
  if (t.rank() != 1) return InvalidArgument("perm must be rank 1, got shape ", t.shape());
  TENON_ASSIGN_OR_RETURN(const DimVector perm, ReadIntegerVector(t, "perm", n));
  CountedVector<bool> seen(n, false);
  int64_t repeated = -1;
  for (const int64_t p : perm) {
    if (p < 0 || p >= n) return InvalidArgument(p, " is out of range [0, ", n, ") in perm");
    if (seen[p]) repeated = p;
    seen[p] = true;
  }
  if (repeated >= 0) {
    const auto missing = std::find(seen.begin(), seen.end(), false) - seen.begin();
    return InvalidArgument(missing, " is missing from {", Join(perm, ","), "}: ", repeated,
                           " is duplicated in the permutation.");
  }
  return perm;
}

Status TransposeShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (c.constant(1) == nullptr) return c.Return(PartialShape::OfRank(in.rank()));
  const int64_t rank = in.rank_known() ? in.rank() : c.constant(1)->num_elements();
  TENON_ASSIGN_OR_RETURN(const DimVector perm, ReadPermutation(*c.constant(1), rank));
  DimVector dims(rank);
  for (int64_t i = 0; i < rank; ++i) dims[i] = in.dim(static_cast<int>(perm[i]));
  return c.Return(PartialShape(dims));
}

template <typename T>
Status Invert(const Tensor& in, Tensor* out) {
  if (in.num_elements() > std::numeric_limits<T>::max()) {
    return InvalidArgument("a permutation of ", in.dtype(),
                           " must have <= ", std::numeric_limits<T>::max(), " elements, found ",
                           in.num_elements());
  }
  const T n = static_cast<T>(in.num_elements());
  T* inverse = out->data<T>();
  std::fill_n(inverse, n, T(-1));
  for (T i = 0; i < n; ++i) {
    const T at = in.data<T>()[i];
    if (at < 0 || at >= n) return NotInRange(at, n, "x[", i, "]");
    if (inverse[at] != -1) return InvalidArgument(at, " is duplicated in the input.");
    inverse[at] = i;
  }
  return OkStatus();
}

Status InvertPermutationKernel(KernelContext& ctx, const Tensor& in) {
  TENON_RETURN_IF_ERROR(CheckRank(in, 1, "x"));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  return in.dtype() == DType::kInt64 ? Invert<int64_t>(in, out) : Invert<int32_t>(in, out);
}

Status VectorShape(ShapeContext& c) { return c.Return(c.WithRank(0, 1)); }

/// The axes to reverse: numbers, or in the first version of the op truth values, one an axis.
StatusOr<DimVector> ReversedAxes(const Tensor& in, const Tensor& axes) {
  if (axes.dtype() != DType::kBool) return ReadIntegerVector(axes, "axis");
  if (axes.shape() != Shape{in.rank()}) {
    return InvalidArgument(
        "'dims' must have a single value for each dimension of the input, "
        "found shapes ",
        axes.shape(), " and ", in.shape());
  }
  DimVector chosen;
  for (int i = 0; i < in.rank(); ++i) {
    if (axes.data<bool>()[i]) chosen.push_back(i);
  }
  return chosen;
}

/// How far each axis is moved, from 0 to its size.
StatusOr<DimVector> ReadShifts(const Shape& shape, const Tensor& shift, const Tensor& axis) {
  if (shape.rank() < 1) return InvalidArgument("input must be 1-D or higher, found a scalar");
  for (const auto& [what, t] : {std::pair("shift", &shift), std::pair("axis", &axis)}) {
    if (t->rank() <= 1) continue;
    return InvalidArgument(what, " must be a scalar or a 1-D vector, found shape ", t->shape());
  }
  if (shift.shape() != axis.shape()) {
    return InvalidArgument("shift and axis must have the same size, found shapes ", shift.shape(),
                           " and ", axis.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector shifts, ReadIntegers(shift, "shift"));
  TENON_ASSIGN_OR_RETURN(const DimVector axes, ReadIntegers(axis, "axis"));
  DimVector sums(shape.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axes[i], shape.rank(), "axis"));
    const int64_t size = std::max<int64_t>(shape.dim(a), 1);
    int64_t shift_back = -(shifts[i] % size);
    if (shift_back < 0) shift_back += size;
    // Without a sum that may overflow: a dimension may be as large as an int64 when another is 0.
    sums[a] = sums[a] < shift_back ? sums[a] + (size - shift_back) : sums[a] - shift_back;
  }
  return sums;
}

Status ConjugateTransposeKernel(KernelContext& ctx) {
  TENON_RETURN_IF_ERROR(TransposeKernel(ctx, kHostMover));
  if (!IsComplex(ctx.output_type(0))) return OkStatus();
  // In place, unless the transpose is the input itself.
  Tensor& out = ctx.output(0).tensor;
  if (!out.HasOneReference()) {
    TENON_ASSIGN_OR_RETURN(out, out.Copy());
  }
  return DispatchStatus(out.dtype(), ComplexTypes(), [&]<typename T>(T) {
    ParallelFor(out.num_elements(), 0.5, [x = out.data<T>()](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) x[i] = std::conj(x[i]);
    });
  });
}

}  // namespace

Status TileKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const DimVector times,
                         ReadIntegerVector(ctx.input(1), "multiples", in.rank()));
  TENON_ASSIGN_OR_RETURN(const DimVector dims, TiledDims(in.shape().dims(), times));
  if (in.shape().dims() == dims) return ctx.Return(ctx.TakeInput(0));
  // Each dimension becomes two: which repetition, and where in it. The source stands still along
  // the first.
  const DimVector strides = StridesOf(in.shape().dims());
  DimVector pairs;
  StridedView source;
  for (int i = 0; i < in.rank(); ++i) {
    pairs.insert(pairs.end(), {times[i], in.dim(i)});
    source.strides.insert(source.strides.end(), {0, strides[i]});
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  if (out->num_elements() == 0) return OkStatus();
  return mover.copy(ctx, in, source, out, {0, StridesOf(pairs)}, pairs);
}

Status TransposeKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const DimVector perm, ReadPermutation(ctx.input(1), in.rank()));
  if (std::is_sorted(perm.begin(), perm.end())) return ctx.Return(ctx.TakeInput(0));
  const DimVector strides = StridesOf(in.shape().dims());
  DimVector dims(in.rank());
  StridedView source{0, DimVector(in.rank())};
  for (int i = 0; i < in.rank(); ++i) {
    dims[i] = in.dim(static_cast<int>(perm[i]));
    source.strides[i] = strides[perm[i]];
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape(dims)));
  return mover.copy(ctx, in, source, out, {0, StridesOf(dims)}, dims);
}

Status ReverseKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const DimVector axes, ReversedAxes(in, ctx.input(1)));
  StridedView source{0, StridesOf(in.shape().dims())};
  std::vector<bool> seen(in.rank(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < -in.rank() || axes[i] >= in.rank()) {
      return InvalidArgument("'axis'[", i, "] = ", axes[i], " is out of valid range [", -in.rank(),
                             ", ", in.rank() - 1, "]");
    }
    const auto axis = static_cast<int>(axes[i] < 0 ? axes[i] + in.rank() : axes[i]);
    if (seen[axis]) return InvalidArgument("axis ", axis, " specified more than once.");
    seen[axis] = true;
    if (in.dim(axis) > 0) source.offset += (in.dim(axis) - 1) * source.strides[axis];
    source.strides[axis] = -source.strides[axis];
  }
  if (axes.empty()) return ctx.Return(ctx.TakeInput(0));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  return mover.copy(ctx, in, source, out, {0, StridesOf(in.shape().dims())}, in.shape().dims());
}

Status RollKernel(KernelContext& ctx, const Mover& mover) {
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(const DimVector shifts,
                         ReadShifts(in.shape(), ctx.input(1), ctx.input(2)));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  // Along each axis that moves there are two parts, of which the second goes to the front: so many
  // boxes there are in all, and no more than elements.
  std::vector<int> moved;
  for (int i = 0; i < in.rank(); ++i) {
    if (shifts[i] != 0) moved.push_back(i);
  }
  for (int64_t parts = 0; parts < int64_t{1} << moved.size() && !Interrupted(); ++parts) {
    DimVector from(in.rank(), 0), to = from,
                                  box(in.shape().dims().begin(), in.shape().dims().end());
    for (size_t k = 0; k < moved.size(); ++k) {
      const int axis = moved[k];
      const int64_t kept = in.dim(axis) - shifts[axis];
      const bool to_front = ((parts >> k) & 1) != 0;
      (to_front ? from : to)[axis] = to_front ? kept : shifts[axis];
      box[axis] = to_front ? shifts[axis] : kept;
    }
    TENON_RETURN_IF_ERROR(mover.copy(ctx, in, BoxView(in.shape().dims(), from), out,
                                     BoxView(in.shape().dims(), to), box));
  }
  return OkStatus();
}

void RegisterRearrangeOps(OpRegistry& ops) {
  ops.Add("TileGrad", TileGradShape, TileGradKernel, {.types = {{"T", DTypesOf(NumericTypes())}}})
      .Example({Shape{2, 6}, Tensor::Vector({1, 3})});
  ops.Add("Tile", TileShape, With<kHostMover, TileKernel>::Run)
      .Grad(TileGrad)
      .Example({Shape{2, 3}, Tensor::Vector({2, 1})});
  ops.Add("Transpose", TransposeShape, With<kHostMover, TransposeKernel>::Run)
      .Grad([](GradContext& g) { g.dx(0) = Transpose(g.dy(0), InvertPermutation(g.in(1))); })
      .Example({Shape{2, 3}, Tensor::Vector({1, 0})})
      .Example({Shape{2, 3, 2, 2}, Tensor::Vector<int64_t>({2, 0, 3, 1})});
  ops.Add("InvertPermutation", VectorShape, InvertPermutationKernel,
          {.cheap = true, .memory = kHostMemory})
      .Example({Tensor::Vector({2, 0, 1})});
  ops.Add("ReverseV2", UnchangedShape, With<kHostMover, ReverseKernel>::Run)
      .Grad([](GradContext& g) { g.dx(0) = ReverseV2(g.dy(0), g.in(1)); })
      .Example({Shape{2, 3}, Tensor::Vector({-1})});
  ops.Add("Reverse", UnchangedShape, With<kHostMover, ReverseKernel>::Run)
      .Grad([](GradContext& g) { g.dx(0) = Reverse(g.dy(0), g.in(1)); })
      .Example({Shape{2, 3}, Tensor::Vector<bool>({false, true})});
  ops.Add("Roll", UnchangedShape, With<kHostMover, RollKernel>::Run)
      .Grad([](GradContext& g) { g.dx(0) = Roll(g.dy(0), -g.in(1), g.in(2)); })
      .Example({Shape{3, 4}, Tensor::Vector({1, -2}), Tensor::Vector({0, 1})})
      .Example({Shape{5}, Tensor::Scalar(7), Tensor::Scalar<int64_t>(-1)});
  ops.Add("ConjugateTranspose", TransposeShape, ConjugateTransposeKernel)
      .Grad(
          [](GradContext& g) { g.dx(0) = ConjugateTranspose(g.dy(0), InvertPermutation(g.in(1))); })
      .Example({Shape{2, 3}, Tensor::Vector({1, 0})});
}

}  // namespace tenon
