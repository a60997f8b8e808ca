// SPDX-License-Identifier: Apache-2.0
#include <Eigen/SVD>
#include <limits>

#include "core/op/op_registry.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/linalg/eigen.h"
#include "ops/linalg/linalg_ops.h"
#include "ops/linalg/reciprocals.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// In double precision, of whatever type the input is.
template <typename T>
void Decompose(const Eigen::Map<const Matrix<T>>& a, bool vectors, Eigen::Map<Matrix<T>> s,
               Eigen::Map<Matrix<T>> u, Eigen::Map<Matrix<T>> v) {
  using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;
  if (!a.allFinite()) {
    const T nan(std::numeric_limits<RealOf<T>>::quiet_NaN());
    s.setConstant(nan);
    u.setConstant(nan);
    v.setConstant(nan);
    return;
  }
  const bool full = vectors && (u.cols() > s.rows() || v.cols() > s.rows());
  const int options = !vectors ? 0
                      : full   ? Eigen::ComputeFullU | Eigen::ComputeFullV
                               : Eigen::ComputeThinU | Eigen::ComputeThinV;
  const Eigen::BDCSVD<Eigen::MatrixX<Wide>> svd(a.template cast<Wide>(), options);
  s = svd.singularValues().template cast<T>();
  if (!vectors) return;
  u = svd.matrixU().template cast<T>();
  v = svd.matrixV().template cast<T>();
}

Status SvdKernel(KernelContext& ctx, const Tensor& in, bool compute_uv, bool full_matrices) {
  TENON_ASSIGN_OR_RETURN(const Matrices m, MatricesOf(ctx));
  const int64_t p = m.smaller();
  const int64_t left = full_matrices ? m.rows : p, right = full_matrices ? m.columns : p;
  TENON_ASSIGN_OR_RETURN(Tensor * s, ctx.CreateOutput(0, m.With({p})));
  const DimVector none = {0};
  TENON_ASSIGN_OR_RETURN(Tensor * u,
                         ctx.CreateOutput(1, compute_uv ? m.With({m.rows, left}) : none));
  TENON_ASSIGN_OR_RETURN(Tensor * v,
                         ctx.CreateOutput(2, compute_uv ? m.With({m.columns, right}) : none));
  if (s->num_elements() + u->num_elements() + v->num_elements() == 0) return OkStatus();
  return DispatchStatus(in.dtype(), MatrixTypes(), [&]<typename T>(T) {
    return ForEachMatrix(m.count, 20 * m.cubic_cost(), [&](int64_t i) {
      const auto vectors = [&](Tensor* t, int64_t rows, int64_t columns) {
        return compute_uv ? MatrixAt<T>(t, i, rows, columns) : MatrixAt<T>(t, 0, 0, 0);
      };
      auto us = vectors(u, m.rows, left), vs = vectors(v, m.columns, right);
      if (p == 0) {
        us.setIdentity();
        vs.setIdentity();
      } else {
        Decompose<T>(MatrixAt<T>(in, m, i), compute_uv, MatrixAt<T>(s, i, p, 1), us, vs);
      }
      return OkStatus();
    });
  });
}

Status SvdShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, MatrixShape(c));
  if (!c.attrs().GetOr("compute_uv", true)) {
    c.set_output(1, PartialShape{0});
    c.set_output(2, PartialShape{0});
  }
  if (!in.rank_known()) return OkStatus();
  const int64_t m = in.dim(in.rank() - 2), n = in.dim(in.rank() - 1);
  const int64_t p = m < 0 || n < 0 ? PartialShape::kUnknownDim : std::min(m, n);
  const bool full = c.attrs().GetOr("full_matrices", false);
  c.set_output(0, BatchOf(in).ConcatWith({p}));
  if (!c.attrs().GetOr("compute_uv", true)) return OkStatus();
  c.set_output(1, BatchOf(in).ConcatWith({m, full ? m : p}));
  c.set_output(2, BatchOf(in).ConcatWith({n, full ? n : p}));
  return OkStatus();
}

/// As in Giles, "An extended collection of matrix derivative results" (2008), and Townsend,
/// "Differentiating the singular value decomposition" (2016).
Status SvdGrad(GradContext& g) {
  const std::vector<Output> dys = DysOrZeros(g);
  const Output ds = MatrixDiag(dys[0]);
  if (!g.Attr("compute_uv", true)) {
    const auto [s, u, v] = Svd(g.in(0));
    g.dx(0) = Product(u, Product(ds, v, false, true));
    return OkStatus();
  }
  const PartialShape shape = g.in(0).shape();
  int m = static_cast<int>(shape.dim(shape.rank() - 2));
  int n = static_cast<int>(shape.dim(shape.rank() - 1));
  if (m < 0 || n < 0) return Unimplemented("the gradient of Svd needs matrices of known sizes");
  const bool full = g.Attr<bool>("full_matrices");
  if (full && std::abs(m - n) > 1) {
    return Unimplemented("Svd has no gradient for full_matrices of [", m, ",", n, "]");
  }
  const Output s = g.out(0);
  Output u = g.out(1), v = g.out(2), du = dys[1], dv = dys[2];
  const bool tall = m > n;
  if (tall) {  // that of the adjoint
    std::swap(m, n);
    std::swap(u, v);
    std::swap(du, dv);
  }
  const Output f = ReciprocalsOfDifferences(Square(s)), s_matrix = MatrixDiag(s);
  const Output inverse = MatrixDiag(SafeReciprocal(s));
  const Output v1 = full ? ColumnsOf(v, 0, m) : v, dv1 = full ? ColumnsOf(dv, 0, m) : dv;
  const Output vdv = Product(v1, dv1, true);
  const Output u_part = Product(PlusAdjoint(f * Product(u, du, true)), s_matrix);
  const Output v_part = Product(s_matrix, PlusAdjoint(f * vdv));
  Output da = Product(u, Product(ds + u_part + v_part, v1, false, true));
  if (m != n) {
    const Output adjoint = AdjointOf(dv1);
    Output rest = adjoint - Product(Product(adjoint, v1), v1, false, true);
    if (full) {
      const Output v2 = ColumnsOf(v, m, 0), dv2 = ColumnsOf(dv, m, 0);
      rest = rest - Product(Product(v1, dv2, true), v2, false, true);
    }
    da = da + Product(Product(u, inverse), rest);
  }
  if (IsComplex(s.dtype())) {
    const Output l = MatrixDiag(MatrixDiagPart(vdv));
    da = da + 0.5 * Product(u, Product(Product(inverse, AdjointOf(l) - l), v1, false, true));
  }
  g.dx(0) = tall ? AdjointOf(da) : da;
  return OkStatus();
}

}  // namespace

void RegisterSvd(OpRegistry& ops) {
  const KernelOptions options = {.types = {{"T", DTypesOf(MatrixTypes())}},
                                 .attrs = {"compute_uv", "full_matrices"}};
  for (const char* name : {"Svd", "BatchSvd"}) {
    ops.Add(name, SvdShape, SvdKernel, options)
        .Grad(SvdGrad)
        .Example({Shape{2, 3, 2}})
        .Example({Shape{2, 3}}, {{"full_matrices", true}})
        .Example({Shape{3, 3}}, {{"compute_uv", false}});
  }
}

}  // namespace tenon
