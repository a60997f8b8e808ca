// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math_ops.h"
#include "ops/register.h"
#include "ops/selu.h"

// The ops that gradients of elementwise ops are made of. Some take (y, dy), where y is the result
// of the function, others (gradients, features or outputs): TensorFlow's order.

namespace tenon {
namespace {

Output Call(const Scope& s, std::string_view op, Output a, Output b) {
  return s.Op(op).Input(a).Input(b).Output();
}

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
  static void Grad(const Scope& s, Output y, Output dy, Output, Output dz, Output* d_y,
                   Output* d_dy) {
    // dz * dy * (1 - 2 y)
    const Output product = Mul(s, dz, dy);
    *d_y = Sub(s, product, Mul(s, Scaled(s, product, 2), y));
    *d_dy = Call(s, "SigmoidGrad", y, dz);
  }
};

struct TanhGradOp : OfResult {
  static constexpr std::string_view kName = "TanhGrad";
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy * (T(1) - y * y);
  }
  static void Grad(const Scope& s, Output y, Output dy, Output, Output dz, Output* d_y,
                   Output* d_dy) {
    *d_y = Mul(s, Mul(s, Scaled(s, dz, -2), dy), y);
    *d_dy = Call(s, "TanhGrad", y, dz);
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
  static void Grad(const Scope& s, Output y, Output, Output z, Output dz, Output* d_y,
                   Output* d_dy) {
    const Output ratio = RealDiv(s, dz, y);
    *d_y = Mul(s, Neg(s, ConjugateOf(s, ratio)), z);
    *d_dy = Scaled(s, ratio, 0.5);
  }
};

struct RsqrtGradOp : OfResult {
  static constexpr std::string_view kName = "RsqrtGrad";
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return dy == T(0) ? T(0) : T(-0.5) * (dy * c) * (c * c);
  }
  static void Grad(const Scope& s, Output y, Output dy, Output, Output dz, Output* d_y,
                   Output* d_dy) {
    const Output c = ConjugateOf(s, y);
    *d_y = Mul(s, Mul(s, Scaled(s, ConjugateOf(s, dz), -1.5), dy), Square(s, c));
    *d_dy = Call(s, "RsqrtGrad", c, dz);
  }
};

struct ReciprocalGradOp : OfResult {
  static constexpr std::string_view kName = "ReciprocalGrad";
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return dy == T(0) ? T(0) : -dy * c * c;
  }
  static void Grad(const Scope& s, Output y, Output dy, Output, Output dz, Output* d_y,
                   Output* d_dy) {
    const Output c = ConjugateOf(s, y);
    *d_y = Mul(s, Mul(s, Scaled(s, ConjugateOf(s, dz), -2), dy), c);
    *d_dy = Call(s, "ReciprocalGrad", c, dz);
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
  static void Grad(const Scope& s, Output, Output x, Output, Output dz, Output* d_dy, Output* dx) {
    *d_dy = Call(s, "ReluGrad", dz, x);
    *dx = ZerosLike(s, x);
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
  static void Grad(const Scope& s, Output, Output x, Output, Output dz, Output* d_dy, Output* dx) {
    *d_dy = Call(s, "Relu6Grad", dz, x);
    *dx = ZerosLike(s, x);
  }
};

/// Where y is below 0 the gradient op multiplies by (y + constant), so its derivative by y is dy.
void EluLikeGrad(const Scope& s, std::string_view op, Output dy, Output y, Output dz, Output* d_dy,
                 Output* d_y) {
  *d_dy = Call(s, op, dz, y);
  const Output zeros = ZerosLike(s, y);
  *d_y = SelectV2(s, Less(s, y, zeros), Mul(s, dz, dy), zeros);
}

struct EluGradOp : OfActivation {
  static constexpr std::string_view kName = "EluGrad";
  template <typename T>
  TENON_HD static T Apply(T dy, T y) {
    return y < T(0) ? dy * (y + T(1)) : dy;
  }
  static void Grad(const Scope& s, Output dy, Output y, Output, Output dz, Output* d_dy,
                   Output* d_y) {
    EluLikeGrad(s, "EluGrad", dy, y, dz, d_dy, d_y);
  }
};

struct SeluGradOp : OfActivation {
  static constexpr std::string_view kName = "SeluGrad";
  template <typename T>
  TENON_HD static T Apply(T dy, T y) {
    return y < T(0) ? dy * (y + T(kSeluScaleAlpha)) : dy * T(kSeluScale);
  }
  static void Grad(const Scope& s, Output dy, Output y, Output, Output dz, Output* d_dy,
                   Output* d_y) {
    EluLikeGrad(s, "SeluGrad", dy, y, dz, d_dy, d_y);
  }
};

struct SoftplusGradOp : OfActivation {
  static constexpr std::string_view kName = "SoftplusGrad";
  static constexpr double kCost = 4;
  template <typename T>
  TENON_HD static T Apply(T dy, T x) {
    return dy / (T(1) + Exp(-x));
  }
  static void Grad(const Scope& s, Output dy, Output x, Output, Output dz, Output* d_dy,
                   Output* dx) {
    *d_dy = Call(s, "SoftplusGrad", dz, x);
    // sigmoid'(x) = 1 / (exp(-x) + 2 + exp(x))
    const Output sum = AddV2(s, AddV2(s, Exp(s, Neg(s, x)), ScalarOf(s, x.dtype(), 2)), Exp(s, x));
    *dx = RealDiv(s, Mul(s, dz, dy), sum);
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
