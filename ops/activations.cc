// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.h"
#include "ops/maths.h"
#include "ops/register.h"
#include "ops/selu.h"
#include "ops/vector_maths.h"

namespace tenon {
namespace {

/// The gradient ops of activations take the incoming gradient first.
Output GradOf(const Scope& s, std::string_view op, Output dy, Output other) {
  return s.Op(op).Input(dy).Input(other).Output();
}

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
  static Output Grad(const Scope& s, Output x, Output, Output dy) {
    return GradOf(s, "SoftplusGrad", dy, x);
  }
};

struct SoftsignOp {
  static constexpr std::string_view kName = "Softsign";
  using Types = FloatTypes;
  template <typename T>
  TENON_HD static T Apply(T x) {
    return x / (T(1) + Abs(x));
  }
  static Output Grad(const Scope& s, Output x, Output, Output dy) {
    return GradOf(s, "SoftsignGrad", dy, x);
  }
};

struct ReluOp {
  static constexpr std::string_view kName = "Relu";
  using Types = RealTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return x < T(0) ? T(0) : x;  // NaN stays
  }
  static Output Grad(const Scope& s, Output, Output y, Output dy) {
    return GradOf(s, "ReluGrad", dy, y);
  }
};

struct Relu6Op {
  static constexpr std::string_view kName = "Relu6";
  using Types = RealTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return x < T(0) ? T(0) : (x > T(6) ? T(6) : x);
  }
  static Output Grad(const Scope& s, Output, Output y, Output dy) {
    return GradOf(s, "Relu6Grad", dy, y);
  }
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
  static Output Grad(const Scope& s, Output, Output y, Output dy) {
    return GradOf(s, "EluGrad", dy, y);
  }
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
  static Output Grad(const Scope& s, Output, Output y, Output dy) {
    return GradOf(s, "SeluGrad", dy, y);
  }
};

}  // namespace

void RegisterActivations(OpRegistry& ops) {
  RegisterUnaryList(ops, TypeList<SoftplusOp, SoftsignOp, ReluOp, Relu6Op, EluOp, SeluOp>());
}

}  // namespace tenon
