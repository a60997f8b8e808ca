// SPDX-License-Identifier: Apache-2.0
#include "ops/math/comparison.h"

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
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

/// Quantised numbers are equal when the integers are that they are kept as.
template <typename... Ops>
void RegisterEquality(OpRegistry& ops, TypeList<Ops...>) {
  constexpr std::pair<DType, DType> kKept[] = {{DType::kQInt8, DType::kInt8},
                                               {DType::kQUInt8, DType::kUInt8},
                                               {DType::kQInt16, DType::kInt16},
                                               {DType::kQUInt16, DType::kUInt16},
                                               {DType::kQInt32, DType::kInt32}};
  for (BinaryInfo info :
       {elementwise_internal::Describe<Ops, BinaryInfo>(typename Ops::Types())...}) {
    for (const auto& [quantised, kept] : kKept) {
      info.types.push_back(quantised);
      info.loops[static_cast<int>(quantised)] = info.loops[static_cast<int>(kept)];
    }
    RegisterBinary(ops, info);
  }
}

}  // namespace

void RegisterComparison(OpRegistry& ops) {
  RegisterEquality(ops, elementwise::EqualityOps());
  RegisterBinaryList(ops, elementwise::OrderOps());
  ops.Add("ApproximateEqual", MergedShape, ApproximateEqualKernel,
          {.types = {{"T", DTypesOf(RealTypes())}}, .attrs = {"tolerance"}})
      .Example({Shape{2, 3}, Shape{2, 3}});
}

}  // namespace tenon
