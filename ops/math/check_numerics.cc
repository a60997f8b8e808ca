// SPDX-License-Identifier: Apache-2.0
#include "core/op_registry.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

Status CheckNumericsKernel(KernelContext& ctx, const std::string& message) {
  const Tensor& x = ctx.input(0);
  bool nan = false, infinite = false;
  Dispatch(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    for (const T& e : x.flat<T>()) {
      const auto v = static_cast<ComputeType<T>>(e);
      nan |= IsNan(v);
      infinite |= !IsNan(v) && IsNan(v - v);
    }
  });
  if (!nan && !infinite) return ctx.Return(x);
  const std::string_view found = !infinite ? "NaN" : (nan ? "Inf and NaN" : "Inf");
  return InvalidArgument(message, " : Tensor had ", found, " values");
}

void CheckNumericsGrad(GradContext& g) {
  g.dx(0) =
      CheckNumerics(g.dy(0), "Not a number (NaN) or infinity (Inf) values detected in gradient.");
}

}  // namespace

void RegisterCheckNumerics(OpRegistry& ops) {
  ops.Add("CheckNumerics", UnchangedShape, CheckNumericsKernel, {.attrs = {"message"}})
      .Grad(CheckNumericsGrad)
      .Example({Shape{2, 3}}, {{"message", "here"}});
}

}  // namespace tenon
