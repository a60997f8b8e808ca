// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/elementwise.h"

// The ops that gradients of functions are made of which follow from the function's result y:
// (y, dy), TensorFlow's order.

namespace tenon::elementwise {

template <OpName kOpName>
struct OfResult : Elementwise<kOpName, FloatComplexTypes> {
  static constexpr bool kSameShape = true;
};

struct SigmoidGradOp : OfResult<"SigmoidGrad"> {
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy * y * (T(1) - y);
  }
  static GradientPair Grad(Output y, Output dy, Output, Output dz);
};

struct TanhGradOp : OfResult<"TanhGrad"> {
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy * (T(1) - y * y);
  }
  static GradientPair Grad(Output y, Output dy, Output, Output dz);
};

// The next ops give 0 for a gradient of 0, also where the derivative is infinite.

struct SqrtGradOp : OfResult<"SqrtGrad"> {
  static constexpr Domain kDomain{0.5, 2};
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    return dy == T(0) ? T(0) : T(0.5) * dy / Conjugate(y);
  }
  static GradientPair Grad(Output y, Output, Output z, Output dz);
};

struct RsqrtGradOp : OfResult<"RsqrtGrad"> {
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return dy == T(0) ? T(0) : T(-0.5) * (dy * c) * (c * c);
  }
  static GradientPair Grad(Output y, Output dy, Output, Output dz);
};

struct ReciprocalGradOp : OfResult<"ReciprocalGrad"> {
  template <typename T>
  TENON_HD static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return dy == T(0) ? T(0) : -dy * c * c;
  }
  static GradientPair Grad(Output y, Output dy, Output, Output dz);
};

struct InvGradOp : ReciprocalGradOp {
  static constexpr std::string_view kName = "InvGrad";
};

using GradientsByResult =
    TypeList<SigmoidGradOp, TanhGradOp, SqrtGradOp, RsqrtGradOp, ReciprocalGradOp, InvGradOp>;

}  // namespace tenon::elementwise
