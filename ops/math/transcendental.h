// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/elementwise.h"
#include "ops/math/vector_maths.h"

namespace tenon::elementwise {

/// A function of complex numbers too.
template <OpName kOpName>
struct Function : Elementwise<kOpName, FloatComplexTypes> {
  static constexpr double kCost = 4;
};

struct ExpOp : Function<"Exp"> {
  static constexpr FloatLoop* kFloatLoop = &VectorExp;
  static constexpr DoubleLoop* kDoubleLoop = &VectorExp;
  TENON_HD static auto Apply(auto x) { return Exp(x); }
  static Output Grad(Output, Output y, Output dy);
};

struct Expm1Op : Function<"Expm1"> {
  static constexpr FloatLoop* kFloatLoop = &VectorExpm1;
  static constexpr DoubleLoop* kDoubleLoop = &VectorExpm1;
  TENON_HD static auto Apply(auto x) { return Expm1(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct LogOp : Function<"Log"> {
  static constexpr Domain kDomain{0.3, 2};
  static constexpr FloatLoop* kFloatLoop = &VectorLog;
  static constexpr DoubleLoop* kDoubleLoop = &VectorLog;
  TENON_HD static auto Apply(auto x) { return Log(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct Log1pOp : Function<"Log1p"> {
  static constexpr Domain kDomain{-0.5, 2};
  static constexpr FloatLoop* kFloatLoop = &VectorLog1p;
  static constexpr DoubleLoop* kDoubleLoop = &VectorLog1p;
  TENON_HD static auto Apply(auto x) { return Log1p(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct SinOp : Function<"Sin"> {
  static constexpr FloatLoop* kFloatLoop = &VectorSin;
  static constexpr DoubleLoop* kDoubleLoop = &VectorSin;
  TENON_HD static auto Apply(auto x) { return Sin(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct CosOp : Function<"Cos"> {
  static constexpr FloatLoop* kFloatLoop = &VectorCos;
  static constexpr DoubleLoop* kDoubleLoop = &VectorCos;
  TENON_HD static auto Apply(auto x) { return Cos(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct TanOp : Function<"Tan"> {
  static constexpr Domain kDomain{-1, 1};
  static constexpr FloatLoop* kFloatLoop = &VectorTan;
  static constexpr DoubleLoop* kDoubleLoop = &VectorTan;
  TENON_HD static auto Apply(auto x) { return Tan(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct AsinOp : Function<"Asin"> {
  static constexpr Domain kDomain{-0.8, 0.8};
  TENON_HD static auto Apply(auto x) { return Asin(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct AcosOp : Function<"Acos"> {
  static constexpr Domain kDomain{-0.8, 0.8};
  TENON_HD static auto Apply(auto x) { return Acos(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct AtanOp : Function<"Atan"> {
  TENON_HD static auto Apply(auto x) { return Atan(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct SinhOp : Function<"Sinh"> {
  TENON_HD static auto Apply(auto x) { return Sinh(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct CoshOp : Function<"Cosh"> {
  TENON_HD static auto Apply(auto x) { return Cosh(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct AsinhOp : Function<"Asinh"> {
  TENON_HD static auto Apply(auto x) { return Asinh(x); }
  static Output Grad(Output, Output y, Output dy);
};

struct AcoshOp : Function<"Acosh"> {
  static constexpr Domain kDomain{1.3, 3};
  TENON_HD static auto Apply(auto x) { return Acosh(x); }
  static Output Grad(Output, Output y, Output dy);
};

struct AtanhOp : Function<"Atanh"> {
  static constexpr Domain kDomain{-0.8, 0.8};
  TENON_HD static auto Apply(auto x) { return Atanh(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct TanhOp : Function<"Tanh"> {
  static constexpr FloatLoop* kFloatLoop = &VectorTanh;
  static constexpr DoubleLoop* kDoubleLoop = &VectorTanh;
  TENON_HD static auto Apply(auto x) { return Tanh(x); }
  static Output Grad(Output, Output y, Output dy);
};

struct SigmoidOp : Function<"Sigmoid"> {
  static constexpr FloatLoop* kFloatLoop = &VectorSigmoid;
  static constexpr DoubleLoop* kDoubleLoop = &VectorSigmoid;
  TENON_HD static auto Apply(auto x) {
    const decltype(x) one(1);
    return one / (one + Exp(-x));
  }
  static Output Grad(Output, Output y, Output dy);
};

struct ErfOp : Elementwise<"Erf", FloatTypes> {
  static constexpr double kCost = 4;
  static constexpr FloatLoop* kFloatLoop = &VectorErf;
  static constexpr DoubleLoop* kDoubleLoop = &VectorErf;
  TENON_HD static auto Apply(auto x) { return Erf(x); }
  static Output Grad(Output x, Output, Output dy);
};

struct ErfcOp : Elementwise<"Erfc", FloatTypes> {
  static constexpr double kCost = 10;
  TENON_HD static auto Apply(auto x) { return Erfc(x); }
  static Output Grad(Output x, Output, Output dy);
};

using TranscendentalOps =
    TypeList<ExpOp, Expm1Op, LogOp, Log1pOp, SinOp, CosOp, TanOp, AsinOp, AcosOp, AtanOp, SinhOp,
             CoshOp, AsinhOp, AcoshOp, AtanhOp, TanhOp, SigmoidOp, ErfOp, ErfcOp>;

}  // namespace tenon::elementwise
