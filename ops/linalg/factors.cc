// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <Eigen/QR>
#include <limits>

#include "core/op/op_registry.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

Status CholeskyKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, m.cubic_cost(), [&](int64_t i) {
      const Eigen::LLT<Matrix<T>> llt(MatrixAt<T>(in, m, i));
      auto l = MatrixAt<T>(out, i, m.rows, m.rows);
      if (llt.info() == Eigen::Success) {
        l = llt.matrixL();
      } else {
        const Matrix<T> none =
            Matrix<T>::Constant(m.rows, m.rows, T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
        l = none.template triangularView<Eigen::Lower>();
      }
      return OkStatus();
    });
  });
}

/// (S + S^T) / 2, where S = L^-T P(L^T dL) L^-1 and P takes the lower triangle, half of the
/// diagonal.
Status CholeskyGradKernel(KernelContext& ctx, const Tensor& l, const Tensor& dl) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  if (l.shape() != dl.shape()) {
    return InvalidArgument("l and grad must have one shape, found ", l.shape(), " and ",
                           dl.shape());
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, l.shape()));
  if (l.num_elements() == 0) return OkStatus();
  return DispatchStatus(l.dtype(), TypeList<float, double>(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, 4 * m.cubic_cost(), [&](int64_t i) {
      const Matrix<T> lower = MatrixAt<T>(l, m, i).template triangularView<Eigen::Lower>();
      Matrix<T> s = lower.transpose() *
                    Matrix<T>(MatrixAt<T>(dl, m, i).template triangularView<Eigen::Lower>());
      s.diagonal() /= 2;
      s.template triangularView<Eigen::StrictlyUpper>().setZero();
      const auto solver = lower.template triangularView<Eigen::Lower>();
      solver.transpose().solveInPlace(s);
      solver.template solveInPlace<Eigen::OnTheRight>(s);
      MatrixAt<T>(out, i, m.rows, m.rows) = (s + s.transpose()) / 2;
      return OkStatus();
    });
  });
}

Status QrKernel(KernelContext& ctx, const Tensor& in, bool full_matrices) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, MatricesOf(ctx));
  const int64_t p = full_matrices ? m.rows : m.smaller();
  TENON_ASSIGN_OR_RETURN(Tensor * q, ctx.CreateOutput(0, m.With({m.rows, p})));
  TENON_ASSIGN_OR_RETURN(Tensor * r, ctx.CreateOutput(1, m.With({p, m.columns})));
  if (q->num_elements() == 0) return OkStatus();
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, 4 * m.cubic_cost(), [&](int64_t i) {
      const Eigen::HouseholderQR<Matrix<T>> qr(MatrixAt<T>(in, m, i));
      MatrixAt<T>(q, i, m.rows, p) = qr.householderQ() * Matrix<T>::Identity(m.rows, p);
      MatrixAt<T>(r, i, p, m.columns) =
          qr.matrixQR().topRows(p).template triangularView<Eigen::Upper>();
      return OkStatus();
    });
  });
}

Status LuKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * lu, ctx.AllocateOutput(0, in.shape()));
  TENON_ASSIGN_OR_RETURN(Tensor * p, ctx.CreateOutput(1, m.With({m.rows})));
  if (in.num_elements() == 0) return OkStatus();
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, m.cubic_cost(), [&](int64_t i) -> Status {
      const Eigen::PartialPivLU<Matrix<T>> result(MatrixAt<T>(in, m, i));
      if (!IsInvertible(result)) return InvalidArgument("Input is not invertible.");
      MatrixAt<T>(lu, i, m.rows, m.rows) = result.matrixLU();
      const Eigen::PermutationMatrix<Eigen::Dynamic> rows = result.permutationP().transpose();
      for (int64_t k = 0; k < m.rows; ++k) {
        const auto row = rows.indices()[k];
        if (p->dtype() == DType::kInt32) p->data<int32_t>()[i * m.rows + k] = row;
        if (p->dtype() == DType::kInt64) p->data<int64_t>()[i * m.rows + k] = row;
      }
      return OkStatus();
    });
  });
}

Status QrShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, MatrixShape(c));
  if (!in.rank_known()) return OkStatus();
  const int64_t m = in.dim(in.rank() - 2), n = in.dim(in.rank() - 1);
  const int64_t smaller = m < 0 || n < 0 ? PartialShape::kUnknownDim : std::min(m, n);
  const int64_t p = c.attrs().GetOr("full_matrices", false) ? m : smaller;
  c.set_output(0, BatchOf(in).ConcatWith({m, p}));
  c.set_output(1, BatchOf(in).ConcatWith({p, n}));
  return OkStatus();
}

/// The gradient of A = L L^H: L^-H P(L^H dL) L^-1, made Hermitian.
void CholeskyGradient(GradContext& g) {
  const Output l = g.out(0);
  Output middle = Product(l, g.dy(0), /*adjoint_x=*/true);
  middle = LowerPart(MatrixSetDiag(middle, 0.5 * MatrixDiagPart(middle)));
  const Output left = MatrixTriangularSolve(l, middle, {.adjoint = true});
  const Output s = AdjointOf(MatrixTriangularSolve(l, AdjointOf(left), {.adjoint = true}));
  g.dx(0) = 0.5 * PlusAdjoint(s);
}

/// x r^-H of an upper triangular r.
Output DividedByAdjoint(const Output& x, const Output& r) {
  return AdjointOf(MatrixTriangularSolve(r, AdjointOf(x), {.lower = false}));
}

/// The gradient of A = Q R with as many rows as columns or more.
Output TallQrGradient(const Output& q, const Output& r, const Output& dq, const Output& dr) {
  const Output qdq = Product(q, dq, true), rdr = Product(r, dr, false, true);
  const Output skew = qdq - AdjointOf(qdq) + rdr - AdjointOf(rdr);
  Output da = Product(q, dr + DividedByAdjoint(LowerPart(skew), r)) +
              DividedByAdjoint(dq - Product(q, qdq), r);
  if (IsComplex(q.dtype())) {
    // What the phases of R's diagonal add.
    const Output diagonal = MatrixDiagPart(rdr - AdjointOf(qdq));
    const Output imaginary = 0.5 * (diagonal - Conj(diagonal));
    da = da + DividedByAdjoint(Product(q, AdjointOf(MatrixDiag(imaginary))), r);
  }
  return da;
}

/// As in Roberts and Roberts, QR and LQ decomposition matrix backpropagation (arXiv 2009.10071).
Status QrGrad(GradContext& g) {
  const Output q = g.out(0), r = g.out(1);
  const PartialShape shape = g.in(0).shape();
  const int64_t m = shape.dim(shape.rank() - 2), n = shape.dim(shape.rank() - 1);
  if (m < 0 || n < 0) return Unimplemented("the gradient of Qr needs matrices of known sizes");
  if (m > n && g.Attr<bool>("full_matrices")) {
    return Unimplemented("Qr has no gradient for full_matrices with more rows than columns");
  }
  const std::vector<Output> dys = DysOrZeros(g);
  const Output &dq = dys[0], &dr = dys[1];
  if (m >= n) {
    g.dx(0) = TallQrGradient(q, r, dq, dr);
    return OkStatus();
  }
  // A = [X Y], R = [U V]: X = Q U is square.
  const int size = static_cast<int>(m);
  const Output y = ColumnsOf(g.in(0), size, 0), dv = ColumnsOf(dr, size, 0);
  const Output dx = TallQrGradient(q, ColumnsOf(r, 0, size), dq + Product(y, dv, false, true),
                                   ColumnsOf(dr, 0, size));
  g.dx(0) = ConcatV2({dx, Product(q, dv)}, -1);
  return OkStatus();
}

}  // namespace

/// A symmetric positive definite matrix, for examples.
Tensor PositiveExample() { return Tensor::Of<double>({2, 2, 2}, {4, 1, 1, 3, 2, -0.5, -0.5, 1}); }

void RegisterFactors(OpRegistry& ops) {
  const KernelOptions types = {.types = {{"T", DTypesOf(MatrixTypes())}}};
  for (const char* name : {"Cholesky", "BatchCholesky"}) {
    // In double only where the gradient, half of which stands in the triangle that is not read, is
    // that of differences.
    ops.Add(name, SquareShape, CholeskyKernel, types)
        .Example({Tensor::Of<float>({2, 2}, {4, 1, 1, 3})})
        .Example({Tensor::Of<double>({2, 1, 1}, {4, 3})});
  }
  ops.Get("Cholesky").Grad(CholeskyGradient);
  for (const char* name : {"CholeskyGrad", "BatchCholeskyGrad"}) {
    ops.Add(name, SquareShape, CholeskyGradKernel,
            {.types = {{"T", DTypesOf(TypeList<float, double>())}}})
        .Example({PositiveExample(), PositiveExample()});
  }
  ops.Add("Qr", QrShape, QrKernel, {.types = types.types, .attrs = {"full_matrices"}})
      .Grad(QrGrad)
      .Example({Shape{2, 3, 2}})
      .Example({Shape{2, 3}}, {{"full_matrices", true}})
      .Example({Shape{3, 3}});
  ops.Add("Lu", LuKernel, types).Example({Shape{2, 3, 3}});
}

}  // namespace tenon
