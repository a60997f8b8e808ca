// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/fill_empty_rows.h"

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/composition.h"
#include "ops/ragged/ragged_ops.h"

namespace tenon {
namespace {

Status RaggedFillEmptyRowsKernel(KernelContext& ctx) {
  const Tensor &rows = ctx.input(0), &nrows = ctx.input(2);
  TENON_RETURN_IF_ERROR(CheckRank(rows, 1, "value_rowids"));
  TENON_RETURN_IF_ERROR(CheckRank(nrows, 0, "nrows"));
  // The numbers of the rows are the indices of a sparse vector, in which a row may come repeatedly.
  TENON_ASSIGN_OR_RETURN(const Tensor indices, rows.Reshaped(Shape{rows.dim(0), 1}));
  TENON_ASSIGN_OR_RETURN(const Tensor shape, nrows.Reshaped(Shape{1}));
  TENON_ASSIGN_OR_RETURN(const SparseTensor in, SparseTensor::Of(indices, ctx.input(1), shape));
  TENON_ASSIGN_OR_RETURN(const SparseEntries out, FillEmptyRows(ctx, in));
  return WriteVector(ctx, 0, out.indices());
}

}  // namespace

void RegisterRaggedFillEmptyRows(OpRegistry& ops) {
  ops.Add("RaggedFillEmptyRows", RaggedFillEmptyRowsKernel)
      .Grad([](GradContext& g) {
        const auto grads = RaggedFillEmptyRowsGrad(g.out(3), g.dy(1));
        g.dx(1) = grads.d_values;
        g.dx(3) = grads.d_default_value;
      })
      .Example({Tensor::Vector<int64_t>({0, 2, 2}), Shape{3}, Tensor::Scalar<int64_t>(4), Shape{}});
  ops.Add("RaggedFillEmptyRowsGrad", FillEmptyRowsGradKernel,
          {.types = {{"T", DTypesOf(NumericTypes())}}})
      .Example({Tensor::Vector<int64_t>({0, 3, 1}), Shape{5}});
}

}  // namespace tenon
