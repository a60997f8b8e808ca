// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <numbers>
// What nvcc says of a class of Eigen's that is not used here.
#ifdef __CUDACC__
#pragma nv_diag_suppress 20012
#endif
#include <unsupported/Eigen/SpecialFunctions>
#ifdef __CUDACC__
#pragma nv_diag_default 20012
#endif

#include "ops/elementwise.h"

// Special functions as structs (see ops/elementwise.h), computed as Eigen does.

namespace tenon {
namespace elementwise {

namespace numext = Eigen::numext;

template <OpName kOpName>
struct SpecialFunction : Elementwise<kOpName, FloatTypes> {
  static constexpr double kCost = 40;
  static constexpr Domain kDomain{0.3, 3};
};

struct LgammaOp : SpecialFunction<"Lgamma"> {
  TENON_HD static auto Apply(auto x) { return numext::lgamma(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct DigammaOp : SpecialFunction<"Digamma"> {
  TENON_HD static auto Apply(auto x) { return numext::digamma(x); }
  static Output Grad(Output x, Output y, Output dy);
};

/// The quantile of the standard normal distribution: NaN outside [0, 1], where Eigen has
/// infinities.
template <typename T>
TENON_HD T Quantile(T x) {
  return x < T(0) || x > T(1) ? std::numeric_limits<T>::quiet_NaN() : numext::ndtri(x);
}

struct NdtriOp : SpecialFunction<"Ndtri"> {
  static constexpr Domain kDomain{0.1, 0.9};
  TENON_HD static auto Apply(auto x) { return Quantile(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct ErfinvOp : SpecialFunction<"Erfinv"> {
  static constexpr Domain kDomain{-0.9, 0.9};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return Quantile(T(0.5) * x + T(0.5)) * static_cast<T>(std::numbers::sqrt2 / 2);
  }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselI0Op : SpecialFunction<"BesselI0"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_i0(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselI0eOp : SpecialFunction<"BesselI0e"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_i0e(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselI1Op : SpecialFunction<"BesselI1"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_i1(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselI1eOp : SpecialFunction<"BesselI1e"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_i1e(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselK0Op : SpecialFunction<"BesselK0"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_k0(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselK0eOp : SpecialFunction<"BesselK0e"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_k0e(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselK1Op : SpecialFunction<"BesselK1"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_k1(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselK1eOp : SpecialFunction<"BesselK1e"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_k1e(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselJ0Op : SpecialFunction<"BesselJ0"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_j0(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselJ1Op : SpecialFunction<"BesselJ1"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_j1(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselY0Op : SpecialFunction<"BesselY0"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_y0(x); }
  static Output Grad(Output x, Output y, Output dy);
};

struct BesselY1Op : SpecialFunction<"BesselY1"> {
  TENON_HD static auto Apply(auto x) { return numext::bessel_y1(x); }
  static Output Grad(Output x, Output y, Output dy);
};

/// A function of two arguments.
template <OpName kOpName>
struct SpecialFunction2 : Elementwise<kOpName, TypeList<float, double>> {
  static constexpr double kCost = 100;
  static constexpr Domain kDomain{1.2, 3};
};

struct IgammaGradAOp : SpecialFunction2<"IgammaGradA"> {
  TENON_HD static auto Apply(auto a, auto x) { return numext::igamma_der_a(a, x); }
};

struct IgammaOp : SpecialFunction2<"Igamma"> {
  TENON_HD static auto Apply(auto a, auto x) { return numext::igamma(a, x); }
  static GradientPair Grad(Output x, Output y, Output z, Output dz);
};

struct IgammacOp : SpecialFunction2<"Igammac"> {
  TENON_HD static auto Apply(auto a, auto x) { return numext::igammac(a, x); }
  static GradientPair Grad(Output x, Output y, Output z, Output dz);
};

struct PolygammaOp : SpecialFunction2<"Polygamma"> {
  static constexpr Domain kDomain{2, 2};  // a must be a whole number
  TENON_HD static auto Apply(auto a, auto x) { return numext::polygamma(a, x); }
  static GradientPair Grad(Output x, Output y, Output z, Output dz);
};

struct ZetaOp : SpecialFunction2<"Zeta"> {
  TENON_HD static auto Apply(auto x, auto q) { return numext::zeta(x, q); }
  static GradientPair Grad(Output x, Output y, Output z, Output dz);
};

using SpecialFunctions = TypeList<LgammaOp, DigammaOp, NdtriOp, ErfinvOp, BesselI0Op, BesselI0eOp,
                                  BesselI1Op, BesselI1eOp, BesselK0Op, BesselK0eOp, BesselK1Op,
                                  BesselK1eOp, BesselJ0Op, BesselJ1Op, BesselY0Op, BesselY1Op>;
using SpecialFunctions2 = TypeList<IgammaOp, IgammacOp, IgammaGradAOp, PolygammaOp, ZetaOp>;

}  // namespace elementwise

/// The one shape of those of Betainc's inputs that are no scalars; InvalidArgument when they have
/// several.
StatusOr<Shape> BetaincOutput(const KernelContext& ctx);

/// Betainc's element.
template <typename T>
TENON_HD T BetaincOf(T a, T b, T x) {
  return Eigen::numext::betainc(a, b, x);
}

}  // namespace tenon
