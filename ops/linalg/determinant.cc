// SPDX-License-Identifier: Apache-2.0
#include <Eigen/LU>
#include <limits>

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// A number of absolute value 1, or 0, and the logarithm of what it is to be multiplied with.
template <typename T>
std::pair<T, RealOf<T>> LogDeterminant(const Eigen::Map<const Matrix<T>>& m) {
  if (m.size() == 0) return {T(1), 0};
  const Eigen::PartialPivLU<Matrix<T>> lu(m);
  const auto diagonal = lu.matrixLU().diagonal().array();
  const Eigen::Array<RealOf<T>, Eigen::Dynamic, 1> sizes = diagonal.abs();
  const RealOf<T> log = sizes.log().sum();
  constexpr RealOf<T> kInfinity = std::numeric_limits<RealOf<T>>::infinity();
  if (!std::isfinite(log)) return {T(0), log > 0 ? kInfinity : -kInfinity};
  return {T(static_cast<RealOf<T>>(lu.permutationP().determinant())) * (diagonal / sizes).prod(),
          log};
}

/// The determinant, or its sign and logarithm when there are two outputs.
Status DeterminantKernel(KernelContext& ctx, const Tensor& in) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf(ctx));
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    TENON_RETURN_IF_ERROR(ctx.CreateOutput(i, m.batch).status());
  }
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    T* const sign = ctx.output(0).tensor.data<T>();
    T* const log = ctx.num_outputs() > 1 ? ctx.output(1).tensor.data<T>() : nullptr;
    return ForEachMatrix(m.count, m.cubic_cost(), [&](int64_t i) {
      const auto [s, l] = LogDeterminant<T>(MatrixAt<T>(in, m, i));
      sign[i] = log == nullptr ? s * std::exp(l) : s;
      if (log != nullptr) log[i] = l;
      return OkStatus();
    });
  });
}

void DeterminantGrad(GradContext& g) {
  g.dx(0) = AsMatrices(g.dy(0) * g.out(0)) * MatrixInverse(g.in(0), {.adjoint = true});
}

void LogDeterminantGrad(GradContext& g) {
  if (!g.dy(1).exists()) return;
  g.dx(0) = AsMatrices(g.dy(1)) * MatrixInverse(g.in(0), {.adjoint = true});
}

}  // namespace

void RegisterDeterminants(OpRegistry& ops) {
  const KernelOptions types = {.types = {{"T", DTypesOf(MatrixTypes())}}};
  for (const char* name : {"MatrixDeterminant", "BatchMatrixDeterminant"}) {
    ops.Add(name, DeterminantKernel, types).Grad(DeterminantGrad).Example({Shape{2, 3, 3}});
  }
  ops.Add("LogMatrixDeterminant", DeterminantKernel, types)
      .Grad(LogDeterminantGrad)
      .Example({Shape{2, 3, 3}});
}

}  // namespace tenon
