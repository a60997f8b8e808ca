// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/elementwise.h"
#include "ops/math/vector_maths.h"
#include "ops/nn/selu.h"

namespace tenon::elementwise {

struct SoftplusOp : Elementwise<"Softplus", FloatTypes> {
  static constexpr double kCost = 4;
  static constexpr FloatLoop* kFloatLoop = &VectorSoftplus;
  static constexpr DoubleLoop* kDoubleLoop = &VectorSoftplus;
  TENON_HD static auto Apply(auto x) {
    // The exponential never exceeds 1.
    return (x < 0 ? 0 : x) + Log1p(Exp(x < 0 ? x : -x));
  }
  static Output Grad(Output x, Output, Output dy);
};

struct SoftsignOp : Elementwise<"Softsign", FloatTypes> {
  TENON_HD static auto Apply(auto x) { return x / (1 + Abs(x)); }
  static Output Grad(Output x, Output, Output dy);
};

struct ReluOp : Elementwise<"Relu", RealTypes> {
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto x) { return x < 0 ? 0 : x; }
  static Output Grad(Output, Output y, Output dy);
};

struct Relu6Op : Elementwise<"Relu6", RealTypes> {
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto x) { return x < 0 ? 0 : (x > 6 ? 6 : x); }
  static Output Grad(Output, Output y, Output dy);
};

struct EluOp : Elementwise<"Elu", FloatTypes> {
  static constexpr double kCost = 4;
  static void kFloatLoop(const float* x, float* y, int64_t n) { VectorElu(x, y, n, 1, 1); }
  TENON_HD static auto Apply(auto x) { return x < 0 ? Expm1(x) : x; }
  static Output Grad(Output, Output y, Output dy);
};

struct SeluOp : Elementwise<"Selu", FloatTypes> {
  static constexpr double kCost = 4;
  static void kFloatLoop(const float* x, float* y, int64_t n) {
    VectorElu(x, y, n, kSeluScale, kSeluScaleAlpha);
  }
  template <typename T>
  TENON_HD static T Apply(T x) {
    return x < T(0) ? T(kSeluScaleAlpha) * Expm1(x) : T(kSeluScale) * x;
  }
  static Output Grad(Output, Output y, Output dy);
};

using ActivationOps = TypeList<SoftplusOp, SoftsignOp, ReluOp, Relu6Op, EluOp, SeluOp>;

}  // namespace tenon::elementwise
