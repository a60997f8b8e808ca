// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/elementwise.h"
#include "ops/nn/selu.h"

// The ops that gradients of activations are made of: (gradients, features or outputs), TensorFlow's
// order.

namespace tenon::elementwise {

template <OpName kOpName, typename SomeTypes = FloatTypes>
struct OfActivation : Elementwise<kOpName, SomeTypes> {
  static constexpr bool kSameShape = true;
};

struct ReluGradOp : OfActivation<"ReluGrad", RealTypes> {
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto dy, auto x) { return dy * (x > 0 ? 1 : 0); }
  static GradientPair Grad(Output, Output x, Output, Output dz);
};

struct Relu6GradOp : OfActivation<"Relu6Grad", RealTypes> {
  static constexpr Domain kDomain{0.3, 2};
  TENON_HD static auto Apply(auto dy, auto x) { return dy * (x > 0 && x < 6 ? 1 : 0); }
  static GradientPair Grad(Output, Output x, Output, Output dz);
};

struct EluGradOp : OfActivation<"EluGrad"> {
  TENON_HD static auto Apply(auto dy, auto y) { return y < 0 ? dy * (y + 1) : dy; }
  static GradientPair Grad(Output dy, Output y, Output, Output dz);
};

struct SeluGradOp : OfActivation<"SeluGrad"> {
  template <typename T>
  TENON_HD static T Apply(T dy, T y) {
    return y < T(0) ? dy * (y + T(kSeluScaleAlpha)) : dy * T(kSeluScale);
  }
  static GradientPair Grad(Output dy, Output y, Output, Output dz);
};

struct SoftplusGradOp : OfActivation<"SoftplusGrad"> {
  static constexpr double kCost = 4;
  TENON_HD static auto Apply(auto dy, auto x) { return dy / (1 + Exp(-x)); }
  static GradientPair Grad(Output dy, Output x, Output, Output dz);
};

/// TensorFlow has no second derivative of it.
struct SoftsignGradOp : OfActivation<"SoftsignGrad"> {
  TENON_HD static auto Apply(auto dy, auto x) {
    const auto d = 1 + Abs(x);
    return dy / (d * d);
  }
};

using ActivationGradients =
    TypeList<ReluGradOp, Relu6GradOp, EluGradOp, SeluGradOp, SoftplusGradOp, SoftsignGradOp>;

}  // namespace tenon::elementwise
