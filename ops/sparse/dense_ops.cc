// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"
#include "ops/sparse/sparse_ops.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

// --- SparseToDense ---

Status ToDenseKernel(KernelContext& ctx, bool validate_indices) {
  const Tensor &indices = ctx.input(0), &values = ctx.input(2), &fallback = ctx.input(3);
  TENON_ASSIGN_OR_RETURN(const Shape shape, ReadShape(ctx.input(1), "output_shape"));
  if (indices.rank() > 2) {
    return InvalidArgument("sparse_indices should be a scalar, vector, or matrix, got shape ",
                           indices.shape());
  }
  const int64_t count = indices.rank() > 0 ? indices.dim(0) : 1;
  const int64_t rank = indices.rank() > 1 ? indices.dim(1) : 1;
  if (shape.rank() != rank) {
    return InvalidArgument("output_shape has incorrect number of elements: ", shape.rank(),
                           " should be: ", rank);
  }
  if (values.rank() > 1 || (values.rank() == 1 && values.dim(0) != count)) {
    return InvalidArgument("sparse_values has incorrect shape ", values.shape(),
                           ", should be [] or [", count, "]");
  }
  TENON_ASSIGN_OR_RETURN(const Tensor matrix, indices.Reshaped(Shape{count, rank}));
  TENON_ASSIGN_OR_RETURN(const SparseTensor at, SparseTensor::OfIndices(matrix, ctx.input(1)));
  TENON_RETURN_IF_ERROR(validate_indices ? at.CheckSorted() : at.CheckBounds());
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const DimVector strides = StridesOf(shape.dims());
  DispatchElement(out->dtype(), [&]<typename T>(T) {
    T* to = static_cast<T*>(out->raw_data());
    const T* from = static_cast<const T*>(values.raw_data());
    const T& other = *static_cast<const T*>(fallback.raw_data());
    ParallelFor(shape.num_elements(), 0.3,
                [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, other); });
    for (int64_t i = 0; i < count; ++i) {
      int64_t place = 0;
      for (int d = 0; d < rank; ++d) place += at.index(i)[d] * strides[d];
      to[place] = from[values.rank() == 0 ? 0 : i];
    }
  });
  return OkStatus();
}

Status ToDenseShape(ShapeContext& c) { return c.Return(c.ConstantShape(1)); }

void ToDenseGrad(GradContext& g) {
  const Output rank = ShapeOf(g.in(1));
  const Output indices = Reshape(g.in(0), ConcatV2({Const({-1}), rank}, 0));
  const Output values = GatherNd(g.dy(0), indices);
  // All of them belong to a scalar.
  g.dx(2) = Sum(values, Range(0, 1 - Rank(g.in(2)), 1));
  g.dx(3) = Sum(g.dy(0)) - Sum(values);
}

// --- SparseTensorDenseAdd ---

Status DenseAddKernel(KernelContext& ctx, const SparseTensor& a, const Tensor& b) {
  if (a.rank() == 0) return InvalidArgument("the operands must not be scalars");
  if (a.dims != b.shape().dims()) {
    return InvalidArgument("no broadcasting is supported: the sparse side has shape [",
                           Join(a.dims, ","), "], the dense side ", b.shape());
  }
  TENON_RETURN_IF_ERROR(Annotate(a.CheckBounds(), "Sparse tensor has an invalid index"));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, b.shape()));
  CopyElements(b, 0, out, 0, b.num_elements());
  const DimVector strides = StridesOf(a.dims);
  return DispatchStatus(b.dtype(), NumericTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    T* to = out->data<T>();
    for (int64_t i = 0; i < a.size(); ++i) {
      int64_t place = 0;
      for (int d = 0; d < a.rank(); ++d) place += a.index(i)[d] * strides[d];
      to[place] = static_cast<T>(Plus(C(to[place]), C(a.values.data<T>()[i])));
    }
  });
}

Status DenseAddShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape a, SparseInputShape(c));
  // Others are an error of the kernel.
  if (!a.IsCompatibleWith(c.input(3))) return OkStatus();
  return c.Return(a.MergeWith(c.input(3)));
}

// --- SparseDenseCwiseAdd, Mul and Div ---

/// For each entry the element of `dense` at its place. InvalidArgument unless that broadcasts to
/// the shape of `sparse`, and for entries outside it.
StatusOr<CountedVector<int64_t>> PlacesIn(const SparseTensor& sparse, const Tensor& dense) {
  TENON_RETURN_IF_ERROR(sparse.DenseShape());
  const int added = sparse.rank() - dense.rank();
  bool fits = sparse.rank() > 0 && added >= 0;
  for (int d = 0; fits && d < dense.rank(); ++d) {
    fits = dense.dim(d) == 1 || dense.dim(d) == sparse.dims[added + d];
  }
  if (!fits) {
    return InvalidArgument(
        "SparseDenseCwise broadcasts dense to sparse only; got incompatible shapes: [",
        Join(sparse.dims, ","), "] vs. ", dense.shape());
  }
  const Status bounds = sparse.CheckBounds();
  if (!bounds.ok()) {
    return Annotate(bounds,
                    "Provided indices are out-of-bounds w.r.t. dense side with broadcasted "
                    "shape");
  }
  const DimVector strides = StridesOf(dense.shape().dims());
  CountedVector<int64_t> places(sparse.size(), 0);
  for (int64_t i = 0; i < sparse.size(); ++i) {
    for (int d = 0; d < dense.rank(); ++d) {
      if (dense.dim(d) > 1) places[i] += sparse.index(i)[added + d] * strides[d];
    }
  }
  return places;
}

enum class Arithmetic { kAdd, kMultiply, kDivide };

template <Arithmetic kArithmetic>
Status CwiseKernel(KernelContext& ctx, const SparseTensor& sparse, const Tensor& dense) {
  TENON_ASSIGN_OR_RETURN(const CountedVector<int64_t> places, PlacesIn(sparse, dense));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, sparse.values.shape()));
  return DispatchStatus(dense.dtype(), RealTypes(), [&]<typename T>(T) -> Status {
    using C = ComputeType<T>;
    for (int64_t i = 0; i < sparse.size(); ++i) {
      const C x(sparse.values.data<T>()[i]), y(dense.data<T>()[places[i]]);
      if (kArithmetic == Arithmetic::kDivide && y == C(0)) {
        return InvalidArgument(
            "SparseDenseCwiseDiv cannot divide by zero, but the element of the "
            "dense side at entry ",
            i, " is zero");
      }
      const C z = kArithmetic == Arithmetic::kAdd        ? Plus(x, y)
                  : kArithmetic == Arithmetic::kMultiply ? Times(x, y)
                                                         : Quotient(x, y);
      out->data<T>()[i] = static_cast<T>(z);
    }
    return OkStatus();
  });
}

/// The places in `dense` of the entries, as indices.
Output PlacesInDense(const GradContext& g) {
  const Output shape = ShapeOf(g.in(3), {.out_type = DType::kInt64});
  const Output added = Reshape(Size(g.in(2)) - Size(shape), {1});
  const Output sizes = ConcatV2({Fill(added, Const(1, {.dtype = DType::kInt64})), shape}, 0);
  const Output indices = Minimum(g.in(0), sizes - OnesLike(sizes));
  return Slice(indices, ConcatV2({Const({0}), added}, 0), {-1, -1});
}

template <Arithmetic kArithmetic>
void CwiseGrad(GradContext& g) {
  const Output places = PlacesInDense(g), dense = g.in(3), dy = g.dy(0);
  Output of_dense = dy;
  g.dx(1) = dy;
  if (kArithmetic != Arithmetic::kAdd) {
    const bool multiply = kArithmetic == Arithmetic::kMultiply;
    const Output factors = GatherNd(dense, places);
    g.dx(1) = multiply ? dy * factors : dy / factors;
    of_dense = multiply ? dy * g.in(1) : dy * Neg(g.in(1)) / Square(factors);
  }
  g.dx(3) = SparseTensorDenseAdd(places, of_dense, ShapeOf(dense, {.out_type = DType::kInt64}),
                                 ZerosLike(dense));
}

}  // namespace

void RegisterSparseDenseOps(OpRegistry& ops) {
  const KernelOptions real = {.types = {{"T", DTypesOf(RealTypes())}}};
  const Tensor indices = Tensor::Of<int64_t>({3, 2}, {0, 1, 1, 0, 1, 2});
  const Tensor shape = Tensor::Vector<int64_t>({2, 3});
  ops.Add("SparseToDense", ToDenseShape, ToDenseKernel, {.attrs = {"validate_indices"}})
      .Grad(ToDenseGrad)
      .Example({indices, shape, Shape{3}, Shape{}})
      .Example({Tensor::Vector<int64_t>({1, 3}), Tensor::Vector<int64_t>({5}), Shape{}, Shape{}});
  ops.Add("SparseTensorDenseAdd", DenseAddShape, DenseAddKernel,
          {.types = {{"T", DTypesOf(NumericTypes())}}})
      .Grad([](GradContext& g) {
        g.dx(1) = GatherNd(g.dy(0), g.in(0));
        g.dx(3) = g.dy(0);
      })
      .Example({indices, Shape{3}, shape, Shape{2, 3}});
  const auto cwise = [&](const char* name, auto kernel, auto grad) {
    ops.Add(name, kernel, real)
        .Grad(grad)
        .InDomain(1, 3)
        .Example({indices, Shape{3}, shape, Shape{2, 3}})
        .Example({indices, Shape{3}, shape, Shape{2, 1}})
        .Example({indices, Shape{3}, shape, Shape{3}});
  };
  cwise("SparseDenseCwiseAdd", CwiseKernel<Arithmetic::kAdd>, CwiseGrad<Arithmetic::kAdd>);
  cwise("SparseDenseCwiseMul", CwiseKernel<Arithmetic::kMultiply>,
        CwiseGrad<Arithmetic::kMultiply>);
  cwise("SparseDenseCwiseDiv", CwiseKernel<Arithmetic::kDivide>, CwiseGrad<Arithmetic::kDivide>);
}

}  // namespace tenon
