// SPDX-License-Identifier: Apache-2.0
#include "ops/linalg/matrices.h"

#include "core/base/interruption.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "ops/array/array_ops.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"

namespace tenon {

double Matrices::cubic_cost() const {
  return 0.5 * static_cast<double>(rows) * static_cast<double>(columns) *
         static_cast<double>(smaller());
}

StatusOr<Matrices> MatricesOf(const KernelContext& ctx, int i) {
  const Shape& shape = ctx.input(i).shape();
  const int batch = shape.rank() - 2;
  if (batch < 0) {
    return InvalidArgument("Input tensor ", i, " must have rank >= 2, found shape ", shape);
  }
  Matrices m{shape.dim(batch), shape.dim(batch + 1), {}, 1};
  for (const int64_t d : shape.dims().first(batch)) {
    m.batch.push_back(d);
    TENON_ASSIGN_OR_RETURN(m.count, MultiplySizes(m.count, d));
  }
  return m;
}

StatusOr<Matrices> SquareMatricesOf(const KernelContext& ctx, int i) {
  TENON_ASSIGN_OR_RETURN(Matrices m, MatricesOf(ctx, i));
  if (m.rows == m.columns) return m;
  return InvalidArgument("Input matrix must be square, found shape ", ctx.input(i).shape());
}

StatusOr<Matrices> RightSidesOf(const KernelContext& ctx, const Matrices& matrices) {
  TENON_ASSIGN_OR_RETURN(Matrices rhs, MatricesOf(ctx, 1));
  if (rhs.batch == matrices.batch && rhs.rows == matrices.rows) return rhs;
  return InvalidArgument("Input matrix and rhs are incompatible: ", ctx.input(0).shape(), " vs. ",
                         ctx.input(1).shape());
}

Status ForEachMatrix(int64_t count, double cost_ns, absl::FunctionRef<Status(int64_t i)> fn) {
  if (count == 1) {
    const OpenMpTeam team(cost_ns);
    return fn(0);
  }
  Mutex mu;
  Status status;
  std::atomic<bool> failed = false;
  ParallelFor(count, cost_ns + 200, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && !failed && !Interrupted(); ++i) {
      const Status s = fn(i);
      if (s.ok()) continue;
      failed = true;
      MutexLock lock(mu);
      status.Update(s);
    }
  });
  return status;
}

StatusOr<PartialShape> MatrixShape(const ShapeContext& c, int i) { return c.WithRankAtLeast(i, 2); }

StatusOr<PartialShape> SquareMatrixShape(const ShapeContext& c, int i) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, MatrixShape(c, i));
  if (!in.rank_known()) return in;
  const int last = in.rank() - 1;
  TENON_ASSIGN_OR_RETURN(const PartialShape size, in.Part(last - 1, last).MergeWith(in.Part(last)));
  return BatchOf(in).ConcatWith(size).ConcatWith(size);
}

PartialShape BatchOf(const PartialShape& matrices) {
  return matrices.rank_known() ? matrices.Part(0, matrices.rank() - 2) : PartialShape();
}

Status SquareShape(ShapeContext& c) { return c.Return(SquareMatrixShape(c)); }

Output Product(const Output& x, const Output& y, bool adjoint_x, bool adjoint_y) {
  return BatchMatMulV2(x, y, {.adj_x = adjoint_x, .adj_y = adjoint_y});
}

Output AdjointOf(const Output& x) {
  if (x.shape().rank_known()) {
    std::vector<int32_t> perm(x.shape().rank());
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int32_t>(i);
    if (perm.size() >= 2) std::swap(perm.end()[-1], perm.end()[-2]);
    return ConjugateTranspose(x, Const(perm));
  }
  const Output rank = Rank(x);
  const Output last = Pack({rank - 1, rank - 2});
  return ConjugateTranspose(x, ConcatV2({Range(0, rank - 2, 1), last}, 0));
}

Output PlusAdjoint(const Output& x) { return x + AdjointOf(x); }

Output LowerPart(const Output& x) { return MatrixBandPart(x, Const(-1), Const(0)); }
Output UpperPart(const Output& x) { return MatrixBandPart(x, Const(0), Const(-1)); }

Output AsMatrices(const Output& x) { return ExpandDims(ExpandDims(x, -1), -1); }

Output RowsOf(const Output& x, int begin, int end) {
  // Entry 0 is the ellipsis, entry 2 all columns.
  return StridedSlice(x, {0, begin, 0}, {0, end, 0}, {1, 1, 1},
                      {.begin_mask = 4, .end_mask = end == 0 ? 6 : 4, .ellipsis_mask = 1});
}

Output ColumnsOf(const Output& x, int begin, int end) {
  return StridedSlice(x, {0, begin}, {0, end}, {1, 1},
                      {.end_mask = end == 0 ? 2 : 0, .ellipsis_mask = 1});
}

}  // namespace tenon
