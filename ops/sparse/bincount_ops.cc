// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/math/bincount.h"
#include "ops/sparse/sparse_tensor.h"

namespace tenon {
namespace {

Status BincountKernel(KernelContext& ctx, const SparseTensor& in, bool binary_output) {
  TENON_ASSIGN_OR_RETURN(const int64_t bins, ReadBins(ctx.input(3)));
  if (in.rank() != 1 && in.rank() != 2) {
    return InvalidArgument("the input must be a vector or a matrix, found rank ", in.rank());
  }
  TENON_RETURN_IF_ERROR(in.CheckBounds());
  CountedVector<int64_t> rows;
  DimVector dims = {bins};
  if (in.rank() == 2) {
    dims = {in.dims[0], bins};
    for (int64_t i = 0; i < in.size(); ++i) rows.push_back(in.index(i)[0]);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, dims));
  return CountBins(in.values, ctx.input(4), rows, bins, binary_output, out);
}

Status BincountShape(ShapeContext& c) {
  TENON_ASSIGN_OR_RETURN(const PartialShape in, SparseInputShape(c));
  TENON_ASSIGN_OR_RETURN(const int64_t bins, KnownBins(c, 3));
  // The kernel refuses other ranks.
  if (in.rank() != 1 && in.rank() != 2) return OkStatus();
  return c.Return(in.rank() == 1 ? PartialShape{bins} : PartialShape{in.dim(0), bins});
}

}  // namespace

void RegisterSparseBincount(OpRegistry& ops) {
  ops.Add("SparseBincount", BincountShape, BincountKernel, {.attrs = {"binary_output"}})
      .Example({Tensor::Of<int64_t>({3, 2}, {0, 0, 0, 2, 1, 1}), Tensor::Vector<int32_t>({1, 1, 0}),
                Tensor::Vector<int64_t>({2, 3}), Tensor::Scalar<int32_t>(2), Shape{3}});
}

}  // namespace tenon
