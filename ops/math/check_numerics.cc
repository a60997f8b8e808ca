// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/math/register.h"
#include "ops/maths.h"

namespace tenon {
namespace {

class CheckNumericsCpu final : public Kernel {
 public:
  explicit CheckNumericsCpu(KernelConstruction& c)
      : Kernel(c), message_(c.Attr<std::string>("message")) {}

  Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    bool nan = false, infinite = false;
    Dispatch(x.dtype(), FloatTypes(), [&](auto zero) {
      using T = decltype(zero);
      using C = ComputeType<T>;
      for (const T& e : x.flat<T>()) {
        const C v = static_cast<C>(e);
        nan |= v != v;
        infinite |= v == v && v - v != C(0);
      }
    });
    if (nan || infinite) {
      const std::string_view found = !infinite ? "NaN" : (nan ? "Inf and NaN" : "Inf");
      return InvalidArgument(message_, " : Tensor had ", found, " values");
    }
    ctx.set_output(0, x);
    return OkStatus();
  }

 private:
  const std::string message_;
};

void CheckNumericsGrad(GradContext& g) {
  g.dx(0) =
      CheckNumerics(g.dy(0), "Not a number (NaN) or infinity (Inf) values detected in gradient.");
}

}  // namespace

void RegisterCheckNumerics(OpRegistry& ops) {
  ops.Get("CheckNumerics")
      .Shape(UnchangedShape).Kernel<CheckNumericsCpu>(kCpu).Grad(CheckNumericsGrad)
      .Example({Shape{2, 3}}, {{"message", "here"}});
}

}  // namespace tenon
