// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/op/op_registry.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/linalg/solve.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// A triangular matrix of which only the bands next to the diagonal are not 0: column j of `bands`
/// holds what row j of the matrix has, the lower one's diagonal first, the upper one's last.
template <typename T>
struct BandMatrix {
  Eigen::Map<const Matrix<T>> bands;
  bool lower;

  T operator()(int64_t i, int64_t j) const {
    return bands(lower ? i - j : bands.rows() - 1 - (j - i), i);
  }
};

template <typename T>
void SolveBands(const BandMatrix<T>& a, bool adjoint, Eigen::Map<Matrix<T>> x) {
  const int64_t n = x.rows(), bands = a.bands.rows();
  const bool forward = a.lower != adjoint;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = forward ? step : n - 1 - step;
    for (int64_t back = std::min(bands - 1, step); back >= 1; --back) {
      const int64_t j = forward ? i - back : i + back;
      x.row(i) -= (adjoint ? Eigen::numext::conj(a(j, i)) : a(i, j)) * x.row(j);
    }
    x.row(i) /= adjoint ? Eigen::numext::conj(a(i, i)) : a(i, i);
  }
}

Status BandedSolveKernel(KernelContext& ctx, const Matrices& a, const Matrices& b, bool lower,
                         bool adjoint) {
  const Tensor in = ctx.input(0), rhs = ctx.input(1);
  for (const Tensor& t : {in, rhs}) {
    if (t.num_elements() == 0) {
      return InvalidArgument("the inputs must not be empty, found shape ", t.shape());
    }
  }
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return SolveBroadcast(ctx, a, b, [&](int64_t i, int64_t j, int64_t k) -> Status {
      const BandMatrix<T> matrix{MatrixAt<T>(in, a, i), lower};
      if (matrix.bands.row(lower ? 0 : a.rows - 1).cwiseAbs().minCoeff() == 0) {
        return InvalidArgument("Input matrix is not invertible.");
      }
      auto x = MatrixAt<T>(&ctx.output(0).tensor, k, b.rows, b.columns);
      x = MatrixAt<T>(rhs, b, j);
      SolveBands(matrix, adjoint, x);
      return OkStatus();
    });
  });
}

Status TridiagonalMatMulKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const Matrices b, MatricesOf(ctx, 3));
  for (int i = 0; i < 3; ++i) {
    TENON_ASSIGN_OR_RETURN(const Matrices d, MatricesOf(ctx, i));
    constexpr const char* kNames[] = {"superdiag", "maindiag", "subdiag"};
    if (d.batch.size() != b.batch.size()) {
      return InvalidArgument(kNames[i], " must have same rank as rhs, but got ",
                             ctx.input(i).rank(), " and ", ctx.input(3).rank());
    }
    for (size_t k = 0; k < b.batch.size(); ++k) {
      if (d.batch[k] == b.batch[k]) continue;
      return InvalidArgument(kNames[i], " must have same outer dimensions as rhs, but for index ",
                             k, ", got ", d.batch[k], " and ", b.batch[k]);
    }
    if (d.rows != 1) {
      return InvalidArgument(kNames[i], "'s second-to-last dimension must be 1, but got ", d.rows);
    }
    if (d.columns == b.rows) continue;
    return InvalidArgument(kNames[i], "'s last dimension size must be rhs's second-to-last ",
                           "dimension size, but got ", d.columns, " and ", b.rows);
  }
  const Tensor& rhs = ctx.input(3);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, rhs.shape()));
  if (out->num_elements() == 0) return OkStatus();
  return DispatchStatus(rhs.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(b.count, 2 * static_cast<double>(b.size()), [&](int64_t i) {
      const auto diagonal = [&](int k, int64_t row) {
        return ctx.input(k).data<T>()[i * b.rows + row];
      };
      const auto x = MatrixAt<T>(rhs, b, i);
      auto y = MatrixAt<T>(out, i, b.rows, b.columns);
      for (int64_t row = 0; row < b.rows; ++row) {
        y.row(row) = diagonal(1, row) * x.row(row);
        if (row + 1 < b.rows) y.row(row) += diagonal(0, row) * x.row(row + 1);
        if (row > 0) y.row(row) += diagonal(2, row) * x.row(row - 1);
      }
      return OkStatus();
    });
  });
}

/// Solves in place the equations whose matrix has these rows: super-, main and subdiagonal; false
/// when a pivot is 0. With `pivoting` a row changes places with the next one where that has the
/// larger entry, which fills a second superdiagonal. With `perturb` pivots that would make a result
/// overflow are moved away from 0.
template <typename T>
bool SolveTridiagonal(const Eigen::Map<const Matrix<T>>& diagonals, bool pivoting, bool perturb,
                      Eigen::Map<Matrix<T>> x) {
  const int64_t n = x.rows();
  Matrix<T> u(3, n);  // the diagonals from the main one upwards
  u.row(0) = diagonals.row(1);
  u.row(1) = diagonals.row(0);
  u.row(2).setZero();
  u(1, n - 1) = T(0);
  for (int64_t i = 0; i + 1 < n; ++i) {
    const T below = diagonals(2, i + 1);
    if (pivoting && std::abs(below) > std::abs(u(0, i))) {
      const T factor = u(0, i) / below, right = u(1, i);
      u(0, i) = below;
      u(1, i) = u(0, i + 1);
      u(2, i) = u(1, i + 1);
      u(0, i + 1) = right - factor * u(1, i);
      u(1, i + 1) = -factor * u(2, i);
      const Matrix<T> row = x.row(i);
      x.row(i) = x.row(i + 1);
      x.row(i + 1) = row - factor * x.row(i);
    } else if (below != T(0)) {
      if (u(0, i) == T(0)) return false;
      const T factor = below / u(0, i);
      u(0, i + 1) -= factor * u(1, i);
      x.row(i + 1) -= factor * x.row(i);
    }
  }
  using Real = RealOf<T>;
  constexpr Real kMin = std::numeric_limits<Real>::min();
  const Real most = u.cwiseAbs().maxCoeff();
  const Real step = std::max(std::numeric_limits<Real>::epsilon() * most, kMin);
  for (int64_t i = n - 1; i >= 0; --i) {
    if (i + 1 < n) x.row(i) -= u(1, i) * x.row(i + 1);
    if (i + 2 < n) x.row(i) -= u(2, i) * x.row(i + 2);
    T pivot = u(0, i);
    const Real largest = perturb ? x.row(i).cwiseAbs().maxCoeff() : 0;
    const auto overflows = [&] {
      return std::abs(pivot) < kMin || largest > std::abs(pivot) / kMin;
    };
    for (Real more = step; perturb && std::abs(pivot) < 1 && overflows(); more *= 2) {
      pivot += T(std::copysign(more, std::real(pivot)));
    }
    if (pivot == T(0)) return false;
    x.row(i) /= pivot;
  }
  return true;
}

Status TridiagonalSolveKernel(KernelContext& ctx, const Matrices& d, const Matrices& b,
                              bool partial_pivoting, bool perturb_singular) {
  if (perturb_singular && !partial_pivoting) {
    return InvalidArgument("Setting perturb_singular requires also setting partial_pivoting.");
  }
  const Tensor &diagonals = ctx.input(0), &rhs = ctx.input(1);
  if (d.batch != b.batch || d.rows != 3 || d.columns != b.rows) {
    return InvalidArgument("diagonals must be of shape ", PartialShape(b.With({3, b.rows})),
                           ", found ", diagonals.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, rhs.shape()));
  if (out->num_elements() == 0) return OkStatus();
  return DispatchStatus(rhs.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(b.count, 10 * static_cast<double>(b.size()), [&](int64_t i) {
      auto x = MatrixAt<T>(out, i, b.rows, b.columns);
      x = MatrixAt<T>(rhs, b, i);
      if (!SolveTridiagonal<T>(MatrixAt<T>(diagonals, d, i), partial_pivoting, perturb_singular,
                               x)) {
        x.setConstant(T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
      }
      return OkStatus();
    });
  });
}

Status LastInputShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) TENON_RETURN_IF_ERROR(MatrixShape(c, i).status());
  return c.Return(c.input(c.num_inputs() - 1));
}

void BandedSolveGrad(GradContext& g) {
  const bool lower = g.Attr("lower", true);
  const bool adjoint = g.Attr<bool>("adjoint");
  const Output a = g.in(0), b = g.in(1), x = g.out(0);
  const Output db = BandedTriangularSolve(a, g.dy(0), {.lower = lower, .adjoint = !adjoint});
  const Output da = -(adjoint ? Product(x, db, false, true) : Product(db, x, false, true));
  const Output shape = ShapeVector(a);
  const Output last =
      Reshape(Slice(shape, Reshape(Size(shape) - 2, {1}), {1}), Const(Tensor(DType::kInt32, {0}))) -
      1;
  const Output k = lower ? Pack({-last, Const(0)}) : Pack({Const(0), last});
  const Output bands =
      MatrixDiagPartV3(da, k, Const(0, {.dtype = a.dtype()}), {.align = "LEFT_RIGHT"});
  g.dx(0) = SumToBatch(bands, a, b);
  g.dx(1) = SumToBatch(db, b, a);
}

/// The rows of each matrix moved up (down) by one, with zeros for the one that is missing.
Output RowsUp(const Output& x) {
  const Output first = RowsOf(x, 0, 1);
  return ConcatV2({RowsOf(x, 1, 0), ZerosLike(first)}, -2);
}
Output RowsDown(const Output& x) {
  const Output first = RowsOf(x, 0, 1);
  return ConcatV2({ZerosLike(first), RowsOf(x, 0, -1)}, -2);
}

/// The sums of the rows of x * y, as a row.
Output RowSums(const Output& x, const Output& y) { return ExpandDims(Sum(x * y, {-1}), -2); }

void TridiagonalMatMulGrad(GradContext& g) {
  const Output dy = g.dy(0), x = ConjugateOf(g.in(3));
  const auto column = [&](int i) { return AdjointOf(g.in(i)) * dy; };
  g.dx(0) = RowSums(RowsUp(x), dy);
  g.dx(1) = RowSums(x, dy);
  g.dx(2) = RowSums(RowsDown(x), dy);
  g.dx(3) = RowsDown(column(0)) + column(1) + RowsUp(column(2));
}

void TridiagonalSolveGrad(GradContext& g) {
  const Output d = g.in(0), x = ConjugateOf(g.out(0));
  // The super- and the subdiagonal of the adjoint are the other one's, moved by one.
  const Output columns = AdjointOf(d);
  const Output transposed = ConcatV2({ColumnsOf(RowsUp(columns), 2, 3), ColumnsOf(columns, 1, 2),
                                      ColumnsOf(RowsDown(columns), 0, 1)},
                                     -1);
  const Output adjoint = ConjugateOf(AdjointOf(transposed));
  const Output db = TridiagonalSolve(adjoint, g.dy(0),
                                     {.partial_pivoting = g.Attr("partial_pivoting", true),
                                      .perturb_singular = g.Attr<bool>("perturb_singular")});
  g.dx(0) = -ConcatV2({RowSums(db, RowsUp(x)), RowSums(db, x), RowSums(db, RowsDown(x))}, -2);
  g.dx(1) = db;
}

}  // namespace

void RegisterBands(OpRegistry& ops) {
  const auto options = [](std::vector<std::string> attrs) {
    return KernelOptions{.types = {{"T", DTypesOf(MatrixTypes())}}, .attrs = std::move(attrs)};
  };
  const Tensor lower = Tensor::Of<double>({2, 3}, {2, 3, 1.5, 9, 1, -1});
  const Tensor upper = Tensor::Of<double>({2, 3}, {1, -1, 9, 2, 3, 1.5});
  const Tensor diagonals = Tensor::Of<double>({3, 3}, {1, -1, 9, 1, 4, -3, 9, 2, 0.5});
  ops.Add("BandedTriangularSolve", TriangularSolveShape, BandedSolveKernel,
          options({"lower", "adjoint"}))
      .Grad(BandedSolveGrad)
      .Example({lower, Shape{2, 3, 2}})
      .Example({upper, Shape{3, 1}}, {{"lower", false}})
      .Example({lower, Shape{3, 2}}, {{"adjoint", true}});
  ops.Add("TridiagonalMatMul", LastInputShape, TridiagonalMatMulKernel, options({}))
      .Grad(TridiagonalMatMulGrad)
      .Example({Shape{2, 1, 3}, Shape{2, 1, 3}, Shape{2, 1, 3}, Shape{2, 3, 2}});
  ops.Add("TridiagonalSolve", LastInputShape, TridiagonalSolveKernel,
          options({"partial_pivoting", "perturb_singular"}))
      .Grad(TridiagonalSolveGrad)
      .Example({diagonals, Shape{3, 2}})
      .Example({diagonals, Shape{3, 1}}, {{"partial_pivoting", false}});
}

}  // namespace tenon
