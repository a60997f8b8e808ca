// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/gemm.h"
#include "ops/math/math_ops.h"
#include "ops/math/matmul_shape.h"
#include "ops/reduce_segments.h"
#include "ops/segment_loop.h"
#include "ops/sparse/sparse_ops.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

using ProductTypes =
    TypeList<float, double, Half, BFloat16, int32_t, std::complex<float>, std::complex<double>>;

/// The transpose of the matrix `b`, and the conjugate of its elements.
template <typename T>
StatusOr<Tensor> Adjoint(KernelContext& ctx, const Tensor& b) {
  const int64_t rows = b.dim(0), columns = b.dim(1);
  TENON_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(b.dtype(), {columns, rows}));
  const T* in = b.data<T>();
  T* to = out.data<T>();
  ParallelFor(columns, static_cast<double>(rows), [=](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        to[j * rows + i] = static_cast<T>(Conjugate<ComputeType<T>>(in[i * columns + j]));
      }
    }
  });
  return out;
}

/// Row i of the product is the sum of the rows of b that the entries of row i of a name, each times
/// the entry's value.
Status DenseProductKernel(KernelContext& ctx, const SparseTensor& a, const Tensor& b,
                          bool adjoint_a, bool adjoint_b) {
  TENON_RETURN_IF_ERROR(CheckRank(b, 2, "b"));
  if (a.rank() != 2) return InvalidArgument("Tensor 'a_shape' must have 2 elements");
  const int row = adjoint_a ? 1 : 0, column = 1 - row;
  const int64_t inner = b.dim(adjoint_b ? 1 : 0), width = b.dim(adjoint_b ? 0 : 1);
  if (a.dims[column] != inner) {
    return InvalidArgument("Cannot multiply A and B because inner dimension does not match: ",
                           a.dims[column], " vs. ", inner, ".  Did you forget a transpose?");
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {a.dims[row], width}));
  if (out->num_elements() == 0) return OkStatus();
  CountedVector<int64_t> rows(a.size());
  for (int64_t i = 0; i < a.size(); ++i) {
    const int64_t k = a.index(i)[column], m = a.index(i)[row];
    if (k < 0 || k >= inner) {
      return InvalidArgument("k (", k, ") from index[", i, ",", column,
                             "] out of bounds (>=", inner, ")");
    }
    if (m < 0 || m >= a.dims[row]) {
      return InvalidArgument("m (", m, ") from index[", i, ",", row,
                             "] out of bounds (>=", a.dims[row], ")");
    }
    rows[i] = m;
  }
  SegmentedRows by = GroupRows(rows, a.dims[row]);
  return DispatchStatus(b.dtype(), ProductTypes(), [&]<typename T>(T) -> Status {
    using C = ComputeType<T>;
    CountedVector<C> values(a.size());
    for (int64_t k = 0; k < a.size(); ++k) {
      const int64_t entry = by.rows[k];
      const C value(a.values.data<T>()[entry]);
      values[k] = adjoint_a ? Conjugate(value) : value;
      by.rows[k] = a.index(entry)[column];
    }
    Tensor factor = b;
    if (adjoint_b) {
      TENON_ASSIGN_OR_RETURN(factor, Adjoint<T>(ctx, b));
    }
    AccumulateSegments<T>(
        factor.data<T>(), by, width, out->data<T>(), C(0),
        [&](auto acc, auto x, int64_t k) {
          if constexpr (std::is_floating_point_v<T>) return acc + x * values[k];
          if constexpr (!std::is_floating_point_v<T>) return Plus(acc, Times(x, values[k]));
        },
        [](C acc, int64_t) { return acc; });
    return OkStatus();
  });
}

Status DenseProductShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape dense, SparseInputShape(c));
  TENON_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(3, 2));
  TENON_ASSIGN_OR_RETURN(const PartialShape a, dense.MergeWith(PartialShape::OfRank(2)));
  const bool adjoint_a = c.attrs().GetOr("adjoint_a", false);
  const bool adjoint_b = c.attrs().GetOr("adjoint_b", false);
  TENON_RETURN_IF_ERROR(
      PartialShape{a.dim(adjoint_a ? 0 : 1)}.MergeWith(PartialShape{b.dim(adjoint_b ? 1 : 0)}));
  return c.Return(PartialShape{a.dim(adjoint_a ? 1 : 0), b.dim(adjoint_b ? 0 : 1)});
}

void DenseProductGrad(GradContext& g) {
  const bool adjoint_a = g.Attr("adjoint_a", false), adjoint_b = g.Attr("adjoint_b", false);
  const Output indices = g.in(0), b = g.in(3), dy = g.dy(0);
  const Output db =
      SparseTensorDenseMatMul(indices, g.in(1), g.in(2), dy, {.adjoint_a = !adjoint_a});
  const Output swap = Const({1, 0});
  g.dx(3) = adjoint_b ? ConjugateOf(Transpose(db, swap)) : db;
  // An entry's gradient is the product of the row of dy and that of b which it joins.
  const Output rows = GatherV2(indices, adjoint_a ? 1 : 0, 1);
  const Output columns = GatherV2(indices, adjoint_a ? 0 : 1, 1);
  Output of_dy = GatherV2(dy, rows, 0);
  Output of_b = GatherV2(adjoint_b ? Transpose(b, swap) : b, columns, 0);
  if (adjoint_a) of_dy = ConjugateOf(of_dy);
  if (adjoint_a == adjoint_b) of_b = ConjugateOf(of_b);
  g.dx(1) = Sum(of_dy * of_b, {1});
}

// --- SparseMatMul ---

/// `t` as floats; itself if it is of float.
StatusOr<Tensor> AsFloats(KernelContext& ctx, const Tensor& t) {
  if (t.dtype() == DType::kFloat) return t;
  TENON_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(DType::kFloat, t.shape()));
  std::copy_n(t.data<BFloat16>(), t.num_elements(), out.data<float>());
  return out;
}

/// Zeros are multiplied as everything else: oneDNN is faster than looking for them.
Status MatMulOfManyZerosKernel(KernelContext& ctx, bool transpose_a, bool transpose_b) {
  TENON_ASSIGN_OR_RETURN(const GemmShape gemm,
                         MatMulSizes(ctx.input(0), ctx.input(1), transpose_a, transpose_b));
  TENON_ASSIGN_OR_RETURN(const Tensor a, AsFloats(ctx, ctx.input(0)));
  TENON_ASSIGN_OR_RETURN(const Tensor b, AsFloats(ctx, ctx.input(1)));
  TENON_ASSIGN_OR_RETURN(Tensor * c, ctx.CreateOutput(0, {gemm.m, gemm.n}));
  return Gemm(DType::kFloat, gemm, a.raw_data(), b.raw_data(), c->raw_data());
}

void MatMulOfManyZerosGrad(GradContext& g) {
  const bool ta = g.Attr("transpose_a", false), tb = g.Attr("transpose_b", false);
  const bool sparse_a = g.Attr("a_is_sparse", false), sparse_b = g.Attr("b_is_sparse", false);
  const Output a = g.in(0), b = g.in(1), dy = g.dy(0);
  const auto product = [](Output x, Output y, bool tx, bool ty, bool sparse_x, bool sparse_y) {
    return SparseMatMul(
        x, y,
        {.transpose_a = tx, .transpose_b = ty, .a_is_sparse = sparse_x, .b_is_sparse = sparse_y});
  };
  const Output da =
      ta ? product(b, dy, tb, true, sparse_b, false) : product(dy, b, false, !tb, false, sparse_b);
  const Output db =
      tb ? product(dy, a, true, ta, false, sparse_a) : product(a, dy, !ta, false, sparse_a, false);
  g.dx(0) = Cast(da, a.dtype());
  g.dx(1) = Cast(db, b.dtype());
}

}  // namespace

void RegisterSparseMatMulOps(OpRegistry& ops) {
  const Tensor indices = Tensor::Of<int64_t>({4, 2}, {1, 2, 0, 1, 1, 0, 1, 2});
  const Tensor shape = Tensor::Vector<int64_t>({2, 3});
  ops.Add("SparseTensorDenseMatMul", DenseProductShape, DenseProductKernel,
          {.types = {{"T", DTypesOf(ProductTypes())}}, .attrs = {"adjoint_a", "adjoint_b"}})
      .Grad(DenseProductGrad)
      .Example({indices, Shape{4}, shape, Shape{3, 2}})
      .Example({indices, Shape{4}, shape, Shape{2, 2}}, {{"adjoint_a", true}})
      .Example({indices, Shape{4}, shape, Shape{4, 3}}, {{"adjoint_b", true}})
      .Example({indices, Shape{4}, shape, Shape{4, 2}}, {{"adjoint_a", true}, {"adjoint_b", true}});
  ops.Add("SparseMatMul", MatMulShape, MatMulOfManyZerosKernel,
          {.attrs = {"transpose_a", "transpose_b"}})
      .Grad(MatMulOfManyZerosGrad)
      .Example({Shape{2, 3}, Shape{3, 4}})
      .Example({Shape{3, 2}, Shape{4, 3}}, {{"transpose_a", true}, {"transpose_b", true}});
}

}  // namespace tenon
