// SPDX-License-Identifier: Apache-2.0
#include "ops/array/index_tuples.h"
#include "ops/cuda/change_rows.h"
#include "ops/cuda/check.cuh"
#include "ops/cuda/mover.h"
#include "ops/cuda/register.h"

namespace tenon {
namespace cuda {
namespace {

template <Update kUpdate>
Status TensorScatterKernel(KernelContext& ctx, const NodeIdentity& node) {
  const Tensor in = ctx.input(0);
  const Tensor &indices = ctx.input(1), &updates = ctx.input(2);
  const Shape& shape = in.shape();
  TENON_RETURN_IF_ERROR(CheckTensorScatter(shape, indices.shape(), updates.shape()));
  TENON_RETURN_IF_ERROR(CheckUpdateTuples(indices.shape(), updates.shape(), shape));
  TENON_ASSIGN_OR_RETURN(const TupleSizes sizes, SizesOfTuples(indices.shape(), shape));
  TENON_ASSIGN_OR_RETURN(const TupleRows tuples, TupleRows::Create(indices, shape));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  TENON_RETURN_IF_ERROR(kDeviceMover.copy_run(ctx, in, 0, out, 0, in.num_elements()));
  // Nothing may be as many tuples as one likes.
  if (indices.num_elements() == 0) return OkStatus();
  const RunCheck check = AddTupleCheck(ctx, node, indices.shape(), "shape", shape);
  if (updates.num_elements() == 0) return CheckTuples(ctx, tuples, sizes.count, check);
  const int64_t rows = Product(shape.dims(), 0, sizes.depth);
  TENON_ASSIGN_OR_RETURN(const SortedRows sorted,
                         SortTuples(ctx, tuples, sizes.count, rows, check));
  return ChangeRows(ctx, kUpdate, sorted.span, sizes.width, updates, false, out);
}

}  // namespace
}  // namespace cuda

void RegisterCudaTensorScatter(OpRegistry& ops) {
  using cuda::AddKernel, cuda::TensorScatterKernel;
  const KernelOptions real = {.types = {{"T", DTypesOf(RealTypes())}}};
  AddKernel(ops, "TensorScatterUpdate", TensorScatterKernel<Update::kAssign>,
            {.types = {{"T", DTypesOf(PlainTypes())}}});
  AddKernel(ops, "TensorScatterAdd", TensorScatterKernel<Update::kAdd>, real);
  AddKernel(ops, "ScatterNdNonAliasingAdd", TensorScatterKernel<Update::kAdd>, real);
  AddKernel(ops, "TensorScatterSub", TensorScatterKernel<Update::kSubtract>, real);
  AddKernel(ops, "TensorScatterMin", TensorScatterKernel<Update::kMin>, real);
  AddKernel(ops, "TensorScatterMax", TensorScatterKernel<Update::kMax>, real);
}

}  // namespace tenon
