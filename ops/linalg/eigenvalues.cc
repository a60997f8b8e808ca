// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Eigenvalues>
#include <limits>

#include "core/op/op_registry.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/linalg/reciprocals.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"

namespace tenon {

Output ReciprocalsOfDifferences(const Output& x) {
  return MatrixSetDiag(SafeReciprocal(ExpandDims(x, -2) - ExpandDims(x, -1)), ZerosLike(x));
}

Output SafeReciprocal(const Output& x) { return x / (x * x + 1e-20); }

namespace {

template <typename T>
StatusOr<Eigen::SelfAdjointEigenSolver<Matrix<T>>> SelfAdjointEigenpairs(
    const Eigen::Map<const Matrix<T>>& m, bool vectors) {
  Eigen::SelfAdjointEigenSolver<Matrix<T>> eig(
      m, vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (eig.info() == Eigen::Success && m.allFinite()) return eig;
  return InvalidArgument(
      "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
}

/// Outputs 0 and 1 for eigenvalues and eigenvectors: an empty tensor for those not wanted.
Status AllocatePairs(KernelContext& ctx, const Matrices& m, bool vectors) {
  TENON_RETURN_IF_ERROR(ctx.CreateOutput(0, m.With({m.rows})).status());
  if (vectors) return ctx.CreateOutput(1, m.With({m.rows, m.rows})).status();
  TENON_ASSIGN_OR_RETURN(Tensor none, ctx.AllocateTemp(ctx.output_type(1), {0}));
  ctx.set_output(1, std::move(none));
  return OkStatus();
}

Status SelfAdjointEigV2Kernel(KernelContext& ctx, const Tensor& in, bool compute_v) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  TENON_RETURN_IF_ERROR(AllocatePairs(ctx, m, compute_v));
  if (m.count * m.rows == 0) return OkStatus();
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, 10 * m.cubic_cost(), [&](int64_t i) -> Status {
      TENON_ASSIGN_OR_RETURN(const auto eig,
                             SelfAdjointEigenpairs<T>(MatrixAt<T>(in, m, i), compute_v));
      MatrixAt<T>(&ctx.output(0).tensor, i, m.rows, 1) = eig.eigenvalues().template cast<T>();
      if (compute_v) MatrixAt<T>(&ctx.output(1).tensor, i, m.rows, m.rows) = eig.eigenvectors();
      return OkStatus();
    });
  });
}

Status SelfAdjointEigKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, m.With({m.rows + 1, m.rows})));
  if (out->num_elements() == 0) return OkStatus();
  return DispatchStatus(in.dtype(), TypeList<float, double>(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, 10 * m.cubic_cost(), [&](int64_t i) -> Status {
      TENON_ASSIGN_OR_RETURN(const auto eig, SelfAdjointEigenpairs<T>(MatrixAt<T>(in, m, i), true));
      auto both = MatrixAt<T>(out, i, m.rows + 1, m.rows);
      both.row(0) = eig.eigenvalues().transpose();
      both.bottomRows(m.rows) = eig.eigenvectors();
      return OkStatus();
    });
  });
}

/// In double precision, of whatever type the input is.
Status EigKernel(KernelContext& ctx, const Tensor& in, bool compute_v) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  const bool is_double = in.dtype() == DType::kDouble || in.dtype() == DType::kComplex128;
  if (is_double != (ctx.output_type(0) == DType::kComplex128)) {
    return InvalidArgument("eigenvalues of ", in.dtype(), " cannot be ", ctx.output_type(0));
  }
  TENON_RETURN_IF_ERROR(AllocatePairs(ctx, m, compute_v));
  if (m.count * m.rows == 0) return OkStatus();
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;
    using C = std::complex<RealOf<T>>;
    using Solver =
        std::conditional_t<kIsComplex<T>, Eigen::ComplexEigenSolver<Eigen::MatrixX<Wide>>,
                           Eigen::EigenSolver<Eigen::MatrixX<Wide>>>;
    return ForEachMatrix(m.count, 25 * m.cubic_cost(), [&](int64_t i) -> Status {
      const Eigen::MatrixX<Wide> a = MatrixAt<T>(in, m, i).template cast<Wide>();
      // Eigen's solver does not end with every NaN.
      if (!a.allFinite()) {
        return InvalidArgument(
            "Eigen decomposition was not successful. The input might not be valid.");
      }
      const Solver eig(a, compute_v);
      if (eig.info() != Eigen::Success) {
        return InvalidArgument(
            "Eigen decomposition was not successful. The input might not be valid.");
      }
      MatrixAt<C>(&ctx.output(0).tensor, i, m.rows, 1) = eig.eigenvalues().template cast<C>();
      if (!compute_v) return OkStatus();
      MatrixAt<C>(&ctx.output(1).tensor, i, m.rows, m.rows) = eig.eigenvectors().template cast<C>();
      return OkStatus();
    });
  });
}

Status PairsShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, SquareMatrixShape(c));
  const bool vectors = c.attrs().GetOr("compute_v", true);
  c.set_output(0, in.rank_known() ? in.Part(0, in.rank() - 1) : in);
  c.set_output(1, vectors ? in : PartialShape{0});
  return OkStatus();
}

void SelfAdjointEigGrad(GradContext& g) {
  const Output e = g.out(0);
  Output v = g.out(1);
  const std::vector<Output> dys = DysOrZeros(g);
  Output middle = MatrixDiag(dys[0]);
  if (g.Attr("compute_v", true)) {
    middle = middle + ReciprocalsOfDifferences(e) * Product(v, dys[1], true);
  } else {
    v = SelfAdjointEigV2(g.in(0)).v;
  }
  const Output da = Product(v, Product(middle, v, false, true));
  // Only the lower triangle is read.
  const Output both = LowerPart(PlusAdjoint(da));
  g.dx(0) = MatrixSetDiag(both, 0.5 * MatrixDiagPart(both));
}

/// As in Boeddeker et al., arXiv 1701.00392, equation 4.77.
void EigGrad(GradContext& g) {
  const Output e = g.out(0);
  Output v = g.out(1);
  const std::vector<Output> dys = DysOrZeros(g);
  Output middle = MatrixDiag(dys[0]);
  if (g.Attr("compute_v", true)) {
    const Output vdv = Product(v, dys[1], true);
    const Output real = 0.5 * (vdv + Conj(vdv));
    middle = middle + Conj(ReciprocalsOfDifferences(e)) *
                          (vdv - Product(Product(v, v, true), MatrixDiag(MatrixDiagPart(real))));
  } else {
    v = Eig(g.in(0), e.dtype()).v;
  }
  const Output adjoint = AdjointOf(v);
  g.dx(0) = Cast(MatrixSolve(adjoint, Product(middle, adjoint)), g.in(0).dtype());
}

}  // namespace

void RegisterEigenvalues(OpRegistry& ops) {
  const auto options = [](DTypeVector types, std::vector<std::string> attrs) {
    return KernelOptions{.types = {{"T", std::move(types)}}, .attrs = std::move(attrs)};
  };
  const Tensor symmetric = Tensor::Of<double>({2, 2, 2}, {4, 1, 1, 3, 2, -0.5, -0.5, 1});
  for (const std::string batch : {"", "Batch"}) {
    ops.Add(batch + "SelfAdjointEig", SelfAdjointEigKernel,
            options(DTypesOf(TypeList<float, double>()), {}))
        .Example({symmetric});
    ops.Add(batch + "SelfAdjointEigV2", PairsShape, SelfAdjointEigV2Kernel,
            options(DTypesOf(MatrixTypes()), {"compute_v"}))
        .Grad(SelfAdjointEigGrad)
        .Example({symmetric})
        .Example({symmetric}, {{"compute_v", false}});
  }
  ops.Add("Eig", PairsShape, EigKernel, options(DTypesOf(MatrixTypes()), {"compute_v"}))
      .Grad(EigGrad)
      .Example({symmetric}, {{"Tout", DType::kComplex128}});
}

}  // namespace tenon
