// SPDX-License-Identifier: Apache-2.0
#include "core/op_registry.h"
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/selu.h"

// The ops that gradients of elementwise ops are made of. Some take (y, dy), where y is the result
// of the function, others (gradients, features or outputs): TensorFlow's order.

namespace tenon {
namespace {

template <OpName kOpName>
struct OfResult : Elementwise<kOpName, FloatComplexTypes> {
  static constexpr bool kSameShape = true;
};

struct SigmoidGradOp : OfResult<"SigmoidGrad"> {
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy * y * (T(1) - y);
  }
  static GradientPair Grad(Output y, Output dy, Output, Output dz) {
    // dz * dy * (1 - 2 y)
    const Output c = ConjugateOf(y), product = dz * ConjugateOf(dy);
    return {product - 2 * product * c, SigmoidGrad(c, dz)};
  }
};

struct TanhGradOp : OfResult<"TanhGrad"> {
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy * (T(1) - y * y);
  }
  static GradientPair Grad(Output y, Output dy, Output, Output dz) {
    const Output c = ConjugateOf(y);
    return {-2 * dz * ConjugateOf(dy) * c, TanhGrad(c, dz)};
  }
};

// Of the next ones a gradient of 0 gives 0 also where the derivative is infinite.

struct SqrtGradOp : OfResult<"SqrtGrad"> {
  static constexpr Domain kDomain{0.5, 2};
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy == T(0) ? T(0) : T(0.5) * dy / Conjugate(y);
  }
  static GradientPair Grad(Output y, Output, Output z, Output dz) {
    const Output ratio = dz / y;
    return {-ConjugateOf(ratio) * z, 0.5 * ratio};
  }
};

struct RsqrtGradOp : OfResult<"RsqrtGrad"> {
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return dy == T(0) ? T(0) : T(-0.5) * (dy * c) * (c * c);
  }
  static GradientPair Grad(Output y, Output dy, Output, Output dz) {
    const Output c = ConjugateOf(y);
    return {-1.5 * ConjugateOf(dz) * dy * Square(c), RsqrtGrad(c, dz)};
  }
};

struct ReciprocalGradOp : OfResult<"ReciprocalGrad"> {
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return dy == T(0) ? T(0) : -dy * c * c;
  }
  static GradientPair Grad(Output y, Output dy, Output, Output dz) {
    const Output c = ConjugateOf(y);
    return {-2 * ConjugateOf(dz) * dy * c, ReciprocalGrad(c, dz)};
  }
};

struct InvGradOp : ReciprocalGradOp {
  static constexpr std::string_view kName = "InvGrad";
};

template <OpName kOpName, typename SomeTypes = FloatTypes>
struct OfActivation : Elementwise<kOpName, SomeTypes> {
  static constexpr bool kSameShape = true;
};

struct ReluGradOp : OfActivation<"ReluGrad", RealTypes> {
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto dy, auto x) { return dy * (x > 0 ? 1 : 0); }
  static GradientPair Grad(Output, Output x, Output, Output dz) {
    return {ReluGrad(dz, x), ZerosLike(x)};
  }
};

struct Relu6GradOp : OfActivation<"Relu6Grad", RealTypes> {
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto dy, auto x) { return dy * (x > 0 && x < 6 ? 1 : 0); }
  static GradientPair Grad(Output, Output x, Output, Output dz) {
    return {Relu6Grad(dz, x), ZerosLike(x)};
  }
};

/// Where y is below 0 the gradient op multiplies by (y + constant), so its derivative by y is dy.
Output GradOfEluLike(Output dy, Output y, Output dz) {
  const Output zeros = ZerosLike(y);
  return SelectV2(y < zeros, dz * dy, zeros);
}

struct EluGradOp : OfActivation<"EluGrad"> {
  TENON_HD static auto Apply(auto dy, auto y) { return y < 0 ? dy * (y + 1) : dy; }
  static GradientPair Grad(Output dy, Output y, Output, Output dz) {
    return {EluGrad(dz, y), GradOfEluLike(dy, y, dz)};
  }
};

struct SeluGradOp : OfActivation<"SeluGrad"> {
  template <typename T>
  TENON_HD static T Apply(T dy, T y) {
    return y < T(0) ? dy * (y + T(kSeluScaleAlpha)) : dy * T(kSeluScale);
  }
  static GradientPair Grad(Output dy, Output y, Output, Output dz) {
    return {SeluGrad(dz, y), GradOfEluLike(dy, y, dz)};
  }
};

struct SoftplusGradOp : OfActivation<"SoftplusGrad"> {
  static constexpr double kCost = 4;
  TENON_HD static auto Apply(auto dy, auto x) { return dy / (1 + Exp(-x)); }
  static GradientPair Grad(Output dy, Output x, Output, Output dz) {
    const Output d_dy = SoftplusGrad(dz, x);
    // sigmoid'(x) = 1 / (exp(-x) + 2 + exp(x))
    const Output sum = Exp(-x) + 2 + Exp(x);
    return {d_dy, dz * dy / sum};
  }
};

/// TensorFlow has no second derivative of it.
struct SoftsignGradOp : OfActivation<"SoftsignGrad"> {
  TENON_HD static auto Apply(auto dy, auto x) {
    const auto d = 1 + Abs(x);
    return dy / (d * d);
  }
};

}  // namespace

void RegisterElementwiseGradients(OpRegistry& ops) {
  RegisterBinaryList(
      ops,
      TypeList<SigmoidGradOp, TanhGradOp, SqrtGradOp, RsqrtGradOp, ReciprocalGradOp, InvGradOp,
               ReluGradOp, Relu6GradOp, EluGradOp, SeluGradOp, SoftplusGradOp, SoftsignGradOp>());
}

}  // namespace tenon
