// SPDX-License-Identifier: Apache-2.0
#include "ops/math/check_numerics.h"

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// What of these there is, as "Inf and NaN" or "-Inf, +Inf, and NaN".
std::string ListOf(std::vector<std::string> found) {
  if (found.size() > 1) found.back() = StrCat("and ", found.back());
  return Join(found, found.size() > 2 ? ", " : " ");
}

/// With kSigned the message tells the infinities apart.
template <bool kSigned>
Status CheckNumericsKernel(KernelContext& ctx, const Tensor& x, const std::string& message) {
  bool nan = false, negative = false, positive = false;
  Dispatch(x.dtype(), FloatTypes(), [&]<typename T>(T) {
    for (const T& e : x.flat<T>()) {
      const auto v = static_cast<ComputeType<T>>(e);
      nan |= IsNan(v);
      negative |= IsNan(v - v) && v < 0;
      positive |= IsNan(v - v) && v > 0;
    }
  });
  if (!nan && !negative && !positive) return ctx.Return(x);
  return NumericsError({nan, negative, positive}, kSigned, message);
}

constexpr char kInGradient[] = "Not a number (NaN) or infinity (Inf) values detected in gradient.";

}  // namespace

Status NumericsError(const FoundNumerics& n, bool is_signed, std::string_view message) {
  std::vector<std::string> found;
  if (is_signed && n.negative) found.emplace_back("-Inf");
  if (is_signed && n.positive) found.emplace_back("+Inf");
  if (!is_signed && (n.negative || n.positive)) found.emplace_back("Inf");
  if (n.nan) found.emplace_back("NaN");
  return InvalidArgument(message, " : Tensor had ", ListOf(std::move(found)), " values");
}

void RegisterCheckNumerics(OpRegistry& ops) {
  ops.Add("CheckNumerics", UnchangedShape, CheckNumericsKernel<false>, {.attrs = {"message"}})
      .Grad([](GradContext& g) { g.dx(0) = CheckNumerics(g.dy(0), kInGradient); })
      .Example({Shape{2, 3}}, {{"message", "here"}});
  ops.Add("CheckNumericsV2", UnchangedShape, CheckNumericsKernel<true>, {.attrs = {"message"}})
      .Grad([](GradContext& g) {
        const auto message = StrCat(kInGradient, " ", g.Attr<std::string>("message"));
        g.dx(0) = CheckNumericsV2(g.dy(0), message);
      })
      .Example({Shape{2, 3}}, {{"message", "here"}});
}

}  // namespace tenon
