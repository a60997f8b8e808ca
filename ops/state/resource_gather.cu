// SPDX-License-Identifier: Apache-2.0
#include "ops/array/gather.h"
#include "ops/cuda/gather.h"
#include "ops/cuda/register.h"
#include "ops/state/variables.h"

namespace tenon::cuda {
namespace {

Status ResourceGatherKernel(KernelContext& ctx, const VariableInput& input,
                            const NodeIdentity& node, int64_t batch_dims) {
  TENON_ASSIGN_OR_RETURN(const Tensor value, ReadVariable(ctx, input, ctx.output_type(0)));
  const Tensor& indices = ctx.input(1);
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeBatchDims(batch_dims, indices.rank()));
  TENON_RETURN_IF_ERROR(CheckGatherAxis(value.shape(), axis));
  return QueueGatherSlices(ctx, node, value, indices, axis, axis);
}

Status ResourceGatherNdKernel(KernelContext& ctx, const VariableInput& input,
                              const NodeIdentity& node) {
  TENON_ASSIGN_OR_RETURN(const Tensor value, ReadVariable(ctx, input, ctx.output_type(0)));
  return QueueGatherTuples(ctx, node, value, ctx.input(1));
}

}  // namespace
}  // namespace tenon::cuda

namespace tenon {

void RegisterCudaResourceGather(OpRegistry& ops) {
  const DTypeVector plain = DTypesOf(PlainTypes());
  cuda::AddKernel(ops, "ResourceGather", cuda::ResourceGatherKernel,
                  {.types = {{"dtype", plain}}, .attrs = {"batch_dims"}});
  cuda::AddKernel(ops, "ResourceGatherNd", cuda::ResourceGatherNdKernel,
                  {.types = {{"dtype", plain}}});
}

}  // namespace tenon
