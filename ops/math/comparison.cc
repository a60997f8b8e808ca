// SPDX-License-Identifier: Apache-2.0
#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/arguments.h"
#include "ops/elementwise.h"
#include "ops/to_integer.h"

namespace tenon {
namespace {

using EquatableTypes = decltype(ConcatTypes(PlainTypes(), TypeList<TString>()));

struct EqualOp : Elementwise<"Equal", EquatableTypes> {
  TENON_HD static bool Apply(const auto& x, const auto& y) { return x == y; }
};

struct NotEqualOp : Elementwise<"NotEqual", EquatableTypes> {
  TENON_HD static bool Apply(const auto& x, const auto& y) { return !(x == y); }
};

struct LessOp : Elementwise<"Less", RealTypes> {
  TENON_HD static bool Apply(auto x, auto y) { return x < y; }
};

struct LessEqualOp : Elementwise<"LessEqual", RealTypes> {
  TENON_HD static bool Apply(auto x, auto y) { return x <= y; }
};

struct GreaterOp : Elementwise<"Greater", RealTypes> {
  TENON_HD static bool Apply(auto x, auto y) { return x > y; }
};

struct GreaterEqualOp : Elementwise<"GreaterEqual", RealTypes> {
  TENON_HD static bool Apply(auto x, auto y) { return x >= y; }
};

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
  RegisterBinaryList(
      ops, TypeList<EqualOp, NotEqualOp, LessOp, LessEqualOp, GreaterOp, GreaterEqualOp>());
  ops.Add("ApproximateEqual", MergedShape, ApproximateEqualKernel,
          {.types = {{"T", DTypesOf(RealTypes())}}, .attrs = {"tolerance"}})
      .Example({Shape{2, 3}, Shape{2, 3}});
}

}  // namespace tenon
