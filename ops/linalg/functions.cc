// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <cmath>
#include <limits>

// A negative eigenvalue has no real root: the result has NaN, as TensorFlow's, where Eigen would
// end the process when it is built with assertions.
#pragma push_macro("eigen_assert")
#undef eigen_assert
#define eigen_assert(condition) static_cast<void>(0)
#include <unsupported/Eigen/MatrixFunctions>
#pragma pop_macro("eigen_assert")

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// Output 0 = `fn` of each matrix, computed in double precision; all NaN of one that is not finite.
template <typename Types, typename Fn>
Status ForEachFunction(KernelContext& ctx, Types types, Fn fn) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  const Tensor& in = ctx.input(0);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return OkStatus();
  return DispatchStatus(in.dtype(), types, [&]<typename T>(T) {
    using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;
    return ForEachMatrix(m.count, 30 * m.cubic_cost(), [&](int64_t i) {
      const Eigen::MatrixX<Wide> a = MatrixAt<T>(in, m, i).template cast<Wide>();
      auto result = MatrixAt<T>(out, i, m.rows, m.rows);
      if (a.allFinite()) {
        result = fn(a).template cast<T>();
      } else {
        result.setConstant(T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
      }
      return OkStatus();
    });
  });
}

Status ExponentialKernel(KernelContext& ctx) {
  return ForEachFunction(ctx, MatrixTypes(), []<typename M>(const M& a) -> M { return a.exp(); });
}

/// The logarithm of a triangular matrix with eigenvalues that are close to each other, as Eigen
/// computes it: that of a root near the identity. Eigen would take roots for ever of a matrix that
/// has no logarithm (0 is an eigenvalue, or the roots of two add up to 0); here it is NaN.
struct LogarithmOfTriangular : Eigen::internal::MatrixLogarithmAtomic<Eigen::MatrixXcd> {
  Eigen::MatrixXcd compute(const Eigen::MatrixXcd& a) {
    if (a.rows() <= 2) return MatrixLogarithmAtomic::compute(a);
    // Each root halves the logarithm; no finite number is above 2^1024.
    constexpr int kMostRoots = 1100;
    constexpr int kDegree = 7;
    const auto identity = Eigen::MatrixXcd::Identity(a.rows(), a.rows());
    Eigen::MatrixXcd t = a, root = a, result;
    for (int roots = 0; roots < kMostRoots && !Interrupted(); ++roots) {
      const double distance = (t - identity).cwiseAbs().colwise().sum().maxCoeff();
      if (!std::isfinite(distance)) break;
      if (Eigen::internal::matrix_log_get_pade_degree(distance) <= kDegree) {
        Eigen::internal::matrix_log_compute_pade(result, t, kDegree);
        return result * std::ldexp(1.0, roots);
      }
      Eigen::matrix_sqrt_triangular(t, root);
      t = root.triangularView<Eigen::Upper>();
    }
    return Eigen::MatrixXcd::Constant(a.rows(), a.rows(), std::numeric_limits<double>::quiet_NaN());
  }
};

Status LogarithmKernel(KernelContext& ctx) {
  return ForEachFunction(ctx, ComplexTypes(), [](const Eigen::MatrixXcd& a) {
    Eigen::MatrixXcd result;
    LogarithmOfTriangular of_triangular;
    Eigen::internal::matrix_function_compute<Eigen::MatrixXcd>::run(a, of_triangular, result);
    return result;
  });
}

Status SquareRootKernel(KernelContext& ctx) {
  return ForEachFunction(ctx, MatrixTypes(), []<typename M>(const M& a) -> M { return a.sqrt(); });
}

/// The gradient of R R = A: the X of R^H X + X R^H = dR, as linear equations for its n^2 elements,
/// in the order in which they lie.
void SquareRootGrad(GradContext& g) {
  const Output r = g.out(0), shape = ShapeVector(r), one = Const({1});
  const Output n = Slice(shape, Reshape(Size(shape) - 1, {1}), {1});
  const Output batch = Slice(shape, {0}, Reshape(Size(shape) - 2, {1}));
  const Output zeros = ZerosLike(r);
  const Output identity = MatrixSetDiag(zeros, ZerosLike(MatrixDiagPart(r)) + 1);
  const auto kronecker = [&](const Output& x, const Output& y) {
    const Output left = Reshape(x, ConcatV2({batch, n, one, n, one}, 0));
    const Output right = Reshape(y, ConcatV2({batch, one, n, one, n}, 0));
    return Reshape(left * right, ConcatV2({batch, n * n, n * n}, 0));
  };
  // X R^H holds sums over X[i, k] conj(R[j, k]).
  const Output system = kronecker(AdjointOf(r), identity) + kronecker(identity, ConjugateOf(r));
  const Output x = MatrixSolve(system, Reshape(g.dy(0), ConcatV2({batch, n * n, one}, 0)));
  g.dx(0) = Reshape(x, shape);
}

}  // namespace

void RegisterMatrixFunctions(OpRegistry& ops) {
  const KernelOptions types = {.types = {{"T", DTypesOf(MatrixTypes())}}};
  const Tensor positive = Tensor::Of<double>({2, 2, 2}, {4, 1, 0.5, 3, 2, -0.5, -0.5, 1});
  ops.Add("MatrixExponential", SquareShape, ExponentialKernel, types).Example({positive});
  ops.Add("MatrixLogarithm", SquareShape, LogarithmKernel,
          {.types = {{"T", DTypesOf(ComplexTypes())}}})
      .Example({Tensor::Of<std::complex<double>>({1, 1}, {{2, 1}})});
  ops.Add("MatrixSquareRoot", SquareShape, SquareRootKernel, types)
      .Grad(SquareRootGrad)
      .Example({positive});
}

}  // namespace tenon
