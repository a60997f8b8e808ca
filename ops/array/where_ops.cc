// SPDX-License-Identifier: Apache-2.0
#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/maths.h"

namespace tenon {
namespace {

Status WhereKernel(KernelContext& ctx, const Tensor& in) {
  if (in.rank() == 0) return InvalidArgument("the input must be at least a vector, found a scalar");
  const int rank = in.rank();
  const int64_t size = in.num_elements(), width = in.dim(rank - 1);
  return DispatchStatus(in.dtype(), PlainTypes(), [&]<typename T>(T) -> Status {
    const T* const values = in.data<T>();
    const auto is_true = [values](int64_t i) {
      return ComputeType<T>(values[i]) != ComputeType<T>(0) ? 1 : 0;
    };
    int64_t count = 0;
    SerialFor(size, 0.1, [&](int64_t begin, int64_t end) {
      int64_t true_ones = 0;
#pragma omp simd reduction(+ : true_ones)
      for (int64_t i = begin; i < end; ++i) true_ones += is_true(i);
      count += true_ones;
    });
    TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.CreateOutput(0, {count, rank}));
    int64_t* to = out->data<int64_t>();
    int64_t* const end = to + count * rank;
    DimVector at(rank, 0);  // the row's coordinates
    bool interrupted = false;
    for (int64_t row = 0; row * width < size && !interrupted; ++row) {
      // Each element writes its place, which the next one overwrites unless it counts: a branch
      // would be foretold wrongly as often as values change.
      for (int64_t i = 0; i < width && to != end; ++i) {
        if ((row * width + i) % kStepsBetweenLooks == 0) interrupted = Interrupted();
        if (interrupted) break;
        for (int d = 0; d < rank - 1; ++d) to[d] = at[d];
        to[rank - 1] = i;
        to += is_true(row * width + i) * rank;
      }
      for (int d = rank - 2; d >= 0 && ++at[d] == in.dim(d); --d) at[d] = 0;
    }
    // The rest: of an interrupted kernel, or of elements that have become false meanwhile, as those
    // of a variable may.
    std::fill(to, end, 0);
    return OkStatus();
  });
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
