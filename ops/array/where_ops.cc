// SPDX-License-Identifier: Apache-2.0
#include "core/base/interruption.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"

namespace tenon {
namespace {

Status WhereKernel(KernelContext& ctx, const Tensor& in) {
  if (in.rank() == 0) return InvalidArgument("the input must be at least a vector, found a scalar");
  CountedVector<int64_t> found;
  TENON_RETURN_IF_ERROR(DispatchStatus(in.dtype(), PlainTypes(), [&]<typename T>(T) {
    const T* values = in.data<T>();
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) break;
      if (ComputeType<T>(values[i]) != ComputeType<T>(0)) found.push_back(i);
    }
  }));
  const int rank = in.rank();
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.CreateOutput(0, {static_cast<int64_t>(found.size()), rank}));
  const DimVector strides = StridesOf(in.shape().dims());
  int64_t* at = out->data<int64_t>();
  for (int64_t place : found) {
    for (int d = 0; d < rank; ++d) {
      *at++ = place / strides[d];
      place %= strides[d];
    }
  }
  return OkStatus();
}

Status WhereShape(ShapeContext& c) {
  return c.Return(PartialShape{PartialShape::kUnknownDim, c.input(0).rank()});
}

}  // namespace

void RegisterWhereOps(OpRegistry& ops) {
  ops.Add("Where", WhereShape, WhereKernel, {.types = {{"T", DTypesOf(PlainTypes())}}})
      .Example({Tensor::Of<bool>({2, 2}, {true, false, true, true})});
}

}  // namespace tenon
