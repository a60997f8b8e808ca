// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/nn/nn_ops.h"
#include "ops/nn/register.h"
#include "ops/nn/selu.h"

// The ops that gradients of elementwise ops are made of. Some take (y, dy), where y is the result
// of the function, others (gradients, features or outputs): TensorFlow's order.

namespace tenon {
namespace {

struct OfResult {
  static constexpr bool kSameShape = true;
  using Types = FloatComplexTypes;
};

struct SigmoidGradOp : OfResult {
  static constexpr std::string_view kName = "SigmoidGrad";
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy * y * (T(1) - y);
  }
  static void Grad(Output y, Output dy, Output, Output dz, Output* d_y, Output* d_dy) {
    // dz * dy * (1 - 2 y)
    const Output product = Mul(dz, dy);
    *d_y = Sub(product, Mul(Scaled(product, 2), y));
    *d_dy = SigmoidGrad(y, dz);
  }
};

struct TanhGradOp : OfResult {
  static constexpr std::string_view kName = "TanhGrad";
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy * (T(1) - y * y);
  }
  static void Grad(Output y, Output dy, Output, Output dz, Output* d_y, Output* d_dy) {
    *d_y = Mul(Mul(Scaled(dz, -2), dy), y);
    *d_dy = TanhGrad(y, dz);
  }
};

// Of the next ones a gradient of 0 gives 0 also where the derivative is infinite.

struct SqrtGradOp : OfResult {
  static constexpr std::string_view kName = "SqrtGrad";
  static constexpr Domain kDomain{0.5, 2};
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy == T(0) ? T(0) : T(0.5) * dy / Conjugate(y);
  }
  static void Grad(Output y, Output, Output z, Output dz, Output* d_y, Output* d_dy) {
    const Output ratio = RealDiv(dz, y);
    *d_y = Mul(Neg(ConjugateOf(ratio)), z);
    *d_dy = Scaled(ratio, 0.5);
  }
};

struct RsqrtGradOp : OfResult {
  static constexpr std::string_view kName = "RsqrtGrad";
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return dy == T(0) ? T(0) : T(-0.5) * (dy * c) * (c * c);
  }
  static void Grad(Output y, Output dy, Output, Output dz, Output* d_y, Output* d_dy) {
    const Output c = ConjugateOf(y);
    *d_y = Mul(Mul(Scaled(ConjugateOf(dz), -1.5), dy), Square(c));
    *d_dy = RsqrtGrad(c, dz);
  }
};

struct ReciprocalGradOp : OfResult {
  static constexpr std::string_view kName = "ReciprocalGrad";
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return dy == T(0) ? T(0) : -dy * c * c;
  }
  static void Grad(Output y, Output dy, Output, Output dz, Output* d_y, Output* d_dy) {
    const Output c = ConjugateOf(y);
    *d_y = Mul(Mul(Scaled(ConjugateOf(dz), -2), dy), c);
    *d_dy = ReciprocalGrad(c, dz);
  }
};

struct InvGradOp : ReciprocalGradOp {
  static constexpr std::string_view kName = "InvGrad";
};

struct OfActivation {
  static constexpr bool kSameShape = true;
  using Types = FloatTypes;
};

struct ReluGradOp : OfActivation {
  static constexpr std::string_view kName = "ReluGrad";
  using Types = RealTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T dy, T x) {
    return dy * T(x > T(0) ? 1 : 0);
  }
  static void Grad(Output, Output x, Output, Output dz, Output* d_dy, Output* dx) {
    *d_dy = ReluGrad(dz, x);
    *dx = ZerosLike(x);
  }
};

struct Relu6GradOp : OfActivation {
  static constexpr std::string_view kName = "Relu6Grad";
  using Types = RealTypes;
  static constexpr Domain kDomain{0.3, 2};
  template <typename T>
  TENON_HD static T Apply(T dy, T x) {
    return dy * T(x > T(0) && x < T(6) ? 1 : 0);
  }
  static void Grad(Output, Output x, Output, Output dz, Output* d_dy, Output* dx) {
    *d_dy = Relu6Grad(dz, x);
    *dx = ZerosLike(x);
  }
};

/// Where y is below 0 the gradient op multiplies by (y + constant), so its derivative by y is dy.
Output GradOfEluLike(Output dy, Output y, Output dz) {
  const Output zeros = ZerosLike(y);
  return SelectV2(Less(y, zeros), Mul(dz, dy), zeros);
}

struct EluGradOp : OfActivation {
  static constexpr std::string_view kName = "EluGrad";
  template <typename T>
  TENON_HD static T Apply(T dy, T y) {
    return y < T(0) ? dy * (y + T(1)) : dy;
  }
  static void Grad(Output dy, Output y, Output, Output dz, Output* d_dy, Output* d_y) {
    *d_dy = EluGrad(dz, y);
    *d_y = GradOfEluLike(dy, y, dz);
  }
};

struct SeluGradOp : OfActivation {
  static constexpr std::string_view kName = "SeluGrad";
  template <typename T>
  TENON_HD static T Apply(T dy, T y) {
    return y < T(0) ? dy * (y + T(kSeluScaleAlpha)) : dy * T(kSeluScale);
  }
  static void Grad(Output dy, Output y, Output, Output dz, Output* d_dy, Output* d_y) {
    *d_dy = SeluGrad(dz, y);
    *d_y = GradOfEluLike(dy, y, dz);
  }
};

struct SoftplusGradOp : OfActivation {
  static constexpr std::string_view kName = "SoftplusGrad";
  static constexpr double kCost = 4;
  template <typename T>
  TENON_HD static T Apply(T dy, T x) {
    return dy / (T(1) + Exp(-x));
  }
  static void Grad(Output dy, Output x, Output, Output dz, Output* d_dy, Output* dx) {
    *d_dy = SoftplusGrad(dz, x);
    // sigmoid'(x) = 1 / (exp(-x) + 2 + exp(x))
    const Output sum = AddV2(AddV2(Exp(Neg(x)), 2), Exp(x));
    *dx = RealDiv(Mul(dz, dy), sum);
  }
};

/// TensorFlow has no second derivative of it.
struct SoftsignGradOp : OfActivation {
  static constexpr std::string_view kName = "SoftsignGrad";
  template <typename T>
  TENON_HD static T Apply(T dy, T x) {
    const T d = T(1) + Abs(x);
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
