// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/QR>

#include "core/op/op_registry.h"
#include "ops/array/array_ops.h"
#include "ops/broadcast.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/linalg/solve.h"
#include "ops/maths.h"

namespace tenon {

Status SolveBroadcast(KernelContext& ctx, const Matrices& a, const Matrices& b,
                      absl::FunctionRef<Status(int64_t i, int64_t j, int64_t k)> solve) {
  if (a.columns != b.rows) {
    return InvalidArgument("In[0] mismatch In[1] shape: ", a.columns, " vs. ", b.rows, ": ",
                           ctx.input(0).shape(), " ", ctx.input(1).shape());
  }
  const Shape a_batch(a.batch), b_batch(b.batch);
  TENON_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast({&a_batch, &b_batch}));
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, Concat(plan.shape.dims(), {b.rows, b.columns})));
  if (out->num_elements() == 0) return OkStatus();
  CountedVector<std::pair<int64_t, int64_t>> pairs(plan.shape.num_elements());
  const BroadcastPlan::Dim& inner = plan.inner();
  ForEachRun(plan, 1, [&](const int64_t* from, int64_t begin, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      pairs[begin + i] = {from[0] + i * inner.strides[0], from[1] + i * inner.strides[1]};
    }
  });
  const double cost = 0.5 * static_cast<double>(a.size()) * static_cast<double>(b.columns);
  return ForEachMatrix(plan.shape.num_elements(), cost,
                       [&](int64_t k) { return solve(pairs[k].first, pairs[k].second, k); });
}

Output SumToBatch(const Output& dx, const Output& x, const Output& other) {
  const PartialShape &batch = BatchOf(x.shape()), &others = BatchOf(other.shape());
  if (batch.IsFullyKnown() && batch == others) return dx;
  const auto batch_shape = [](const Output& shape) {
    return Slice(shape, {0}, Reshape(Size(shape) - 2, {1}));
  };
  const Output shape = ShapeVector(x);
  const auto [repeated, _] =
      BroadcastGradientArgs(batch_shape(shape), batch_shape(ShapeVector(other)));
  return Reshape(Sum(dx, repeated), shape);
}

namespace {

constexpr std::string_view kSingular = "Input matrix is not invertible.";

Status InverseKernel(KernelContext& ctx, const Tensor& in, bool adjoint) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, 3 * m.cubic_cost(), [&](int64_t i) -> Status {
      const Eigen::PartialPivLU<Matrix<T>> lu(MatrixAt<T>(in, m, i));
      if (!IsInvertible(lu)) return InvalidArgument("Input is not invertible.");
      auto inverse = MatrixAt<T>(out, i, m.rows, m.rows);
      inverse.noalias() = lu.inverse();
      if (adjoint) inverse.adjointInPlace();
      return OkStatus();
    });
  });
}

Status SolveKernel(KernelContext& ctx, const Tensor& in, const Tensor& rhs, bool adjoint) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  TENON_ASSIGN_OR_RETURN(const Matrices b, RightSidesOf(ctx, m));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, rhs.shape()));
  if (out->num_elements() == 0) return OkStatus();
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, m.cubic_cost(), [&](int64_t i) -> Status {
      Matrix<T> a = MatrixAt<T>(in, m, i);
      if (adjoint) a.adjointInPlace();
      const Eigen::PartialPivLU<Matrix<T>> lu(a);
      if (!IsInvertible(lu)) return InvalidArgument(kSingular);
      MatrixAt<T>(out, i, b.rows, b.columns).noalias() = lu.solve(MatrixAt<T>(rhs, b, i));
      return OkStatus();
    });
  });
}

/// The x that makes |a x - b|^2 + l2 |x|^2 least, by the normal equations; of several without l2
/// the shortest.
template <typename T>
Status LeastSquares(const Matrix<T>& a, const Matrix<T>& b, double l2, Eigen::Map<Matrix<T>> x) {
  const bool tall = a.rows() >= a.cols();
  Matrix<T> gram = tall ? Matrix<T>(a.adjoint() * a) : Matrix<T>(a * a.adjoint());
  gram.diagonal().array() += T(static_cast<RealOf<T>>(l2));
  const Eigen::LLT<Matrix<T>> llt(gram);
  if (llt.info() != Eigen::Success) {
    return InvalidArgument(
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
        "larger l2_regularizer > 0.");
  }
  if (tall) {
    x = llt.solve(a.adjoint() * b);
  } else {
    x = a.adjoint() * llt.solve(b);
  }
  return OkStatus();
}

Status SolveLsKernel(KernelContext& ctx, const Tensor& in, const Tensor& rhs, bool fast) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, MatricesOf(ctx));
  TENON_ASSIGN_OR_RETURN(const Matrices b, RightSidesOf(ctx, m));
  const double l2 = ctx.input(2).scalar<double>();
  if (!(l2 >= 0)) return InvalidArgument("l2_regularizer must be >= 0, found ", l2);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, m.With({m.columns, b.columns})));
  if (out->num_elements() == 0) return OkStatus();
  if (m.rows == 0) {
    ZeroElements(out);
    return OkStatus();
  }
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, 4 * m.cubic_cost(), [&](int64_t i) -> Status {
      auto x = MatrixAt<T>(out, i, m.columns, b.columns);
      if (fast) return LeastSquares<T>(MatrixAt<T>(in, m, i), MatrixAt<T>(rhs, b, i), l2, x);
      const Eigen::CompleteOrthogonalDecomposition<Matrix<T>> cod(MatrixAt<T>(in, m, i));
      x = cod.solve(MatrixAt<T>(rhs, b, i));
      return OkStatus();
    });
  });
}

Status TriangularSolveKernel(KernelContext& ctx, bool lower, bool adjoint) {
  TENON_ASSIGN_OR_RETURN(const Matrices a, SquareMatricesOf(ctx));
  TENON_ASSIGN_OR_RETURN(const Matrices b, MatricesOf(ctx, 1));
  const Tensor in = ctx.input(0), rhs = ctx.input(1);
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return SolveBroadcast(ctx, a, b, [&](int64_t i, int64_t j, int64_t k) {
      const auto matrix = MatrixAt<T>(in, a, i);
      auto x = MatrixAt<T>(&ctx.output(0).tensor, k, b.rows, b.columns);
      x = MatrixAt<T>(rhs, b, j);
      if (lower && adjoint) {
        matrix.adjoint().template triangularView<Eigen::Upper>().solveInPlace(x);
      } else if (lower) {
        matrix.template triangularView<Eigen::Lower>().solveInPlace(x);
      } else if (adjoint) {
        matrix.adjoint().template triangularView<Eigen::Lower>().solveInPlace(x);
      } else {
        matrix.template triangularView<Eigen::Upper>().solveInPlace(x);
      }
      return OkStatus();
    });
  });
}

void InverseGrad(GradContext& g) {
  const bool adjoint = g.Attr<bool>("adjoint");
  const Output inverse = g.out(0);
  g.dx(0) = -Product(inverse, Product(g.dy(0), inverse, adjoint, !adjoint), /*adjoint_x=*/!adjoint);
}

/// The gradient of the matrix of a solver, from the solution and the gradient of its right side.
Output MatrixGradient(const GradContext& g, const Output& drhs) {
  const Output x = g.out(0);
  return -(g.Attr<bool>("adjoint") ? Product(x, drhs, false, true) : Product(drhs, x, false, true));
}

void SolveGrad(GradContext& g) {
  g.dx(1) = MatrixSolve(g.in(0), g.dy(0), {.adjoint = !g.Attr<bool>("adjoint")});
  g.dx(0) = MatrixGradient(g, g.dx(1));
}

void TriangularSolveGrad(GradContext& g) {
  const bool lower = g.Attr("lower", true);
  const Output a = g.in(0), b = g.in(1);
  const Output db =
      MatrixTriangularSolve(a, g.dy(0), {.lower = lower, .adjoint = !g.Attr<bool>("adjoint")});
  const Output da = MatrixGradient(g, db);
  g.dx(0) = SumToBatch(lower ? LowerPart(da) : UpperPart(da), a, b);
  g.dx(1) = SumToBatch(db, b, a);
}

/// The gradient of x = (A^H A + l2)^-1 A^H b for tall matrices, else A^H (A A^H + l2)^-1 b.
Status SolveLsGrad(GradContext& g) {
  const Output a = g.in(0), b = g.in(1), x = g.out(0), dx = g.dy(0);
  const PartialShape shape = a.shape();
  const int64_t m = shape.dim(shape.rank() - 2), n = shape.dim(shape.rank() - 1);
  if (m < 0 || n < 0) return Unimplemented("the gradient needs matrices of known sizes");
  if (!g.Attr("fast", true)) return Unimplemented("there is no gradient for fast = false");
  const bool tall = m >= n;
  const Output gram = Product(a, a, tall, !tall);
  const Output l2 = Cast(g.in(2), a.dtype());
  const Output system = MatrixSetDiag(gram, MatrixDiagPart(gram) + l2);
  if (tall) {
    const Output z = MatrixSolve(system, dx);
    g.dx(0) = Product(b, z, false, true) - Product(a, PlusAdjoint(Product(x, z, false, true)));
    g.dx(1) = Product(a, z);
    return OkStatus();
  }
  const Output db = MatrixSolve(system, Product(a, dx)), y = MatrixSolve(system, b);
  g.dx(0) = Product(y, dx - Product(a, db, true), false, true) - Product(db, Product(y, a, true));
  g.dx(1) = db;
  return OkStatus();
}

/// Matrices far from singular, for examples.
Tensor SquareExample() { return Tensor::Of<double>({2, 2, 2}, {3, 1, -1, 2, 1, 2, 0.5, -2}); }

}  // namespace

Status TriangularSolveShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape a, MatrixShape(c));
  TENON_ASSIGN_OR_RETURN(const PartialShape b, MatrixShape(c, 1));
  if (!a.rank_known() || !b.rank_known()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const PartialShape batch, BroadcastShapes(BatchOf(a), BatchOf(b)));
  TENON_ASSIGN_OR_RETURN(const PartialShape rows,
                         a.Part(a.rank() - 1).MergeWith(b.Part(b.rank() - 2, b.rank() - 1)));
  return c.Return(batch.ConcatWith(rows).ConcatWith(b.Part(b.rank() - 1)));
}

void RegisterSolvers(OpRegistry& ops) {
  const auto options = [](std::vector<std::string> attrs) {
    return KernelOptions{.types = {{"T", DTypesOf(MatrixTypes())}}, .attrs = std::move(attrs)};
  };
  const Tensor square = SquareExample(), l2 = Tensor::Scalar(0.25);
  for (const std::string batch : {"", "Batch"}) {
    ops.Add(batch + "MatrixInverse", SquareShape, InverseKernel, options({"adjoint"}))
        .Grad(InverseGrad)
        .Example({square})
        .Example({square}, {{"adjoint", true}});
    ops.Add(batch + "MatrixSolve", SolveKernel, options({"adjoint"}))
        .Grad(SolveGrad)
        .Example({square, Shape{2, 2, 3}})
        .Example({square, Shape{2, 2, 1}}, {{"adjoint", true}});
    ops.Add(batch + "MatrixSolveLs", SolveLsKernel, options({"fast"}))
        .Grad(SolveLsGrad)
        .Example({Shape{2, 3, 2}, Shape{2, 3, 2}, l2})
        .Example({Shape{2, 3}, Shape{2, 1}, l2});
    ops.Add(batch + "MatrixTriangularSolve", TriangularSolveShape, TriangularSolveKernel,
            options({"lower", "adjoint"}))
        .Grad(TriangularSolveGrad)
        .Example({square, Shape{2, 2, 3}})
        .Example({square, Shape{2, 1}}, {{"lower", false}})
        .Example({square, Shape{2, 2, 1}}, {{"adjoint", true}});
  }
}

}  // namespace tenon
