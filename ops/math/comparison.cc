// SPDX-License-Identifier: Apache-2.0
#include "ops/math/comparison.h"

#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/to_integer.h"

namespace tenon {
namespace {

/// |x - y| <= tolerance, which is made a T first.
Status ApproximateEqualKernel(KernelContext& ctx, float tolerance) {
  const Tensor &x = ctx.input(0), &y = ctx.input(1);
  TENON_RETURN_IF_ERROR(CheckSameShape(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, x.shape()));
  return DispatchStatus(x.dtype(), RealTypes(), [&]<typename T>(T) {
    using C = ComputeType<T>;
    C limit;
    if constexpr (std::is_integral_v<T>) {
      limit = C(ToInteger<T>(tolerance));
    } else {
      limit = C(T(tolerance));
    }
    ParallelFor(x.num_elements(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const C difference = Minus(C(x.data<T>()[i]), C(y.data<T>()[i]));
        z->data<bool>()[i] = Abs(difference) <= limit;
      }
    });
  });
}

}  // namespace

void RegisterComparison(OpRegistry& ops) {
  RegisterBinaryList(ops, elementwise::ComparisonOps());
  ops.Add("ApproximateEqual", MergedShape, ApproximateEqualKernel,
          {.types = {{"T", DTypesOf(RealTypes())}}, .attrs = {"tolerance"}})
      .Example({Shape{2, 3}, Shape{2, 3}});
}

}  // namespace tenon
