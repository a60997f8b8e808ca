// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/maths.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/register.h"
#include "ops/nn/selu.h"
#include "ops/math/vector_maths.h"

namespace tenon {
namespace {

struct SoftplusOp {
  static constexpr std::string_view kName = "Softplus";
  using Types = FloatTypes;
  static constexpr double kCost = 4;
  static constexpr auto kFloatLoop = &VectorSoftplus;
  template <typename T>
  TENON_HD static T Apply(T x) {
    // The exponential never exceeds 1.
    return (x < T(0) ? T(0) : x) + Log1p(Exp(x < T(0) ? x : -x));
  }
  static Output Grad(Output x, Output, Output dy) { return SoftplusGrad(dy, x); }
};

struct SoftsignOp {
  static constexpr std::string_view kName = "Softsign";
  using Types = FloatTypes;
  template <typename T>
  TENON_HD static T Apply(T x) {
    return x / (T(1) + Abs(x));
  }
  static Output Grad(Output x, Output, Output dy) { return SoftsignGrad(dy, x); }
};

struct ReluOp {
  static constexpr std::string_view kName = "Relu";
  using Types = RealTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return x < T(0) ? T(0) : x;  // NaN stays
  }
  static Output Grad(Output, Output y, Output dy) { return ReluGrad(dy, y); }
};

struct Relu6Op {
  static constexpr std::string_view kName = "Relu6";
  using Types = RealTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return x < T(0) ? T(0) : (x > T(6) ? T(6) : x);
  }
  static Output Grad(Output, Output y, Output dy) { return Relu6Grad(dy, y); }
};

struct EluOp {
  static constexpr std::string_view kName = "Elu";
  using Types = FloatTypes;
  static constexpr double kCost = 4;
  static void kFloatLoop(const float* x, float* y, int64_t n) { VectorElu(x, y, n, 1, 1); }
  template <typename T>
  TENON_HD static T Apply(T x) {
    return x < T(0) ? Expm1(x) : x;
  }
  static Output Grad(Output, Output y, Output dy) { return EluGrad(dy, y); }
};

struct SeluOp {
  static constexpr std::string_view kName = "Selu";
  using Types = FloatTypes;
  static constexpr double kCost = 4;
  static void kFloatLoop(const float* x, float* y, int64_t n) {
    VectorElu(x, y, n, kSeluScale, kSeluScaleAlpha);
  }
  template <typename T>
  TENON_HD static T Apply(T x) {
    return x < T(0) ? T(kSeluScaleAlpha) * Expm1(x) : T(kSeluScale) * x;
  }
  static Output Grad(Output, Output y, Output dy) { return SeluGrad(dy, y); }
};

}  // namespace

void RegisterActivations(OpRegistry& ops) {
  RegisterUnaryList(ops, TypeList<SoftplusOp, SoftsignOp, ReluOp, Relu6Op, EluOp, SeluOp>());
}

}  // namespace tenon
