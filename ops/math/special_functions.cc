// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <numbers>
#include <unsupported/Eigen/SpecialFunctions>

#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math/math_ops.h"

namespace tenon {
namespace {

namespace numext = Eigen::numext;

template <OpName kOpName, auto kFunction>
struct SpecialFunction : Elementwise<kOpName, FloatTypes> {
  static constexpr double kCost = 40;
  static constexpr Domain kDomain{0.3, 3};
  TENON_HD static auto Apply(auto x) { return kFunction(x); }
};

struct LgammaOp : SpecialFunction<"Lgamma", [](auto x) { return numext::lgamma(x); }> {
  static Output Grad(Output x, Output, Output dy) { return dy * Digamma(x); }
};

struct DigammaOp : SpecialFunction<"Digamma", [](auto x) { return numext::digamma(x); }> {
  static Output Grad(Output x, Output, Output dy) { return dy * Polygamma(OnesLike(x), x); }
};

/// The quantile of the standard normal distribution: NaN outside [0, 1], where Eigen has
/// infinities.
template <typename T>
TENON_HD T Quantile(T x) {
  return x < T(0) || x > T(1) ? std::numeric_limits<T>::quiet_NaN() : numext::ndtri(x);
}

struct NdtriOp : SpecialFunction<"Ndtri", [](auto x) { return Quantile(x); }> {
  static constexpr Domain kDomain{0.1, 0.9};
  static Output Grad(Output, Output y, Output dy) {
    return dy * (std::sqrt(2 * std::numbers::pi) * Exp(Square(y) / 2));
  }
};

struct ErfinvOp : Elementwise<"Erfinv", FloatTypes> {
  static constexpr double kCost = 40;
  static constexpr Domain kDomain{-0.9, 0.9};
  template <typename T>
  TENON_HD static T Apply(T x) {
    return Quantile(T(0.5) * x + T(0.5)) * static_cast<T>(std::numbers::sqrt2 / 2);
  }
  static Output Grad(Output, Output y, Output dy) {
    return dy * (1 / (2 * std::numbers::inv_sqrtpi) * Exp(Square(y)));
  }
};

// Bessel functions. At 0 the derivatives of I1 and J1 are limits.

Output UnlessZero(Output x, double at_zero, Output otherwise) {
  const Output zero = Const(0, {.dtype = x.dtype()});
  return SelectV2(Equal(x, zero), Const(at_zero, {.dtype = x.dtype()}), otherwise);
}

struct BesselI0Op : SpecialFunction<"BesselI0", [](auto x) { return numext::bessel_i0(x); }> {
  static Output Grad(Output x, Output, Output dy) { return dy * BesselI1(x); }
};
struct BesselI0eOp : SpecialFunction<"BesselI0e", [](auto x) { return numext::bessel_i0e(x); }> {
  static Output Grad(Output x, Output y, Output dy) { return dy * (BesselI1e(x) - Sign(x) * y); }
};
struct BesselI1Op : SpecialFunction<"BesselI1", [](auto x) { return numext::bessel_i1(x); }> {
  static Output Grad(Output x, Output y, Output dy) {
    // The series begins x / 2, but TensorFlow has 1 here.
    return dy * UnlessZero(x, 1, BesselI0(x) - y / x);
  }
};
struct BesselI1eOp : SpecialFunction<"BesselI1e", [](auto x) { return numext::bessel_i1e(x); }> {
  static Output Grad(Output x, Output y, Output dy) {
    return dy * UnlessZero(x, 0.5, BesselI0e(x) - y * (Sign(x) + Reciprocal(x)));
  }
};
struct BesselK0Op : SpecialFunction<"BesselK0", [](auto x) { return numext::bessel_k0(x); }> {
  static Output Grad(Output x, Output, Output dy) { return -dy * BesselK1(x); }
};
struct BesselK0eOp : SpecialFunction<"BesselK0e", [](auto x) { return numext::bessel_k0e(x); }> {
  static Output Grad(Output x, Output y, Output dy) { return dy * (y - BesselK1e(x)); }
};
struct BesselK1Op : SpecialFunction<"BesselK1", [](auto x) { return numext::bessel_k1(x); }> {
  static Output Grad(Output x, Output y, Output dy) { return dy * (-BesselK0(x) - y / x); }
};
struct BesselK1eOp : SpecialFunction<"BesselK1e", [](auto x) { return numext::bessel_k1e(x); }> {
  static Output Grad(Output x, Output y, Output dy) {
    return dy * (y * (1 - Reciprocal(x)) - BesselK0e(x));
  }
};
struct BesselJ0Op : SpecialFunction<"BesselJ0", [](auto x) { return numext::bessel_j0(x); }> {
  static Output Grad(Output x, Output, Output dy) { return -dy * BesselJ1(x); }
};
struct BesselJ1Op : SpecialFunction<"BesselJ1", [](auto x) { return numext::bessel_j1(x); }> {
  static Output Grad(Output x, Output y, Output dy) {
    return dy * UnlessZero(x, 0.5, BesselJ0(x) - y / x);
  }
};
struct BesselY0Op : SpecialFunction<"BesselY0", [](auto x) { return numext::bessel_y0(x); }> {
  static Output Grad(Output x, Output, Output dy) { return -dy * BesselY1(x); }
};
struct BesselY1Op : SpecialFunction<"BesselY1", [](auto x) { return numext::bessel_y1(x); }> {
  static Output Grad(Output x, Output y, Output dy) { return dy * (BesselY0(x) - y / x); }
};

/// Of two arguments.
template <OpName kOpName, auto kFunction>
struct SpecialFunction2 : Elementwise<kOpName, TypeList<float, double>> {
  static constexpr double kCost = 100;
  static constexpr Domain kDomain{1.2, 3};
  TENON_HD static auto Apply(auto x, auto y) { return kFunction(x, y); }
};

struct IgammaGradAOp
    : SpecialFunction2<"IgammaGradA", [](auto a, auto x) { return numext::igamma_der_a(a, x); }> {};

struct IgammaOp : SpecialFunction2<"Igamma", [](auto a, auto x) { return numext::igamma(a, x); }> {
  static GradientPair Grad(Output a, Output x, Output, Output dz) {
    return {dz * IgammaGradA(a, x), dz * Exp((a - 1) * Log(x) - x - Lgamma(a))};
  }
};

struct IgammacOp
    : SpecialFunction2<"Igammac", [](auto a, auto x) { return numext::igammac(a, x); }> {
  static GradientPair Grad(Output a, Output x, Output z, Output dz) {
    return IgammaOp::Grad(a, x, z, -dz);
  }
};

// TensorFlow differentiates these by their second argument only.

struct PolygammaOp
    : SpecialFunction2<"Polygamma", [](auto a, auto x) { return numext::polygamma(a, x); }> {
  static constexpr Domain kDomain{2, 2};  // a must be a whole number
  static GradientPair Grad(Output a, Output x, Output, Output dz) {
    return {Output(), dz * Polygamma(a + 1, x)};
  }
};

struct ZetaOp : SpecialFunction2<"Zeta", [](auto x, auto q) { return numext::zeta(x, q); }> {
  static GradientPair Grad(Output x, Output q, Output, Output dz) {
    return {Output(), -dz * x * Zeta(x + 1, q)};
  }
};

/// The one shape of those inputs that are no scalars.
StatusOr<PartialShape> BetaincOutput(absl::Span<const PartialShape> inputs) {
  PartialShape shape = {};
  bool any = false, unknown = false;
  for (const PartialShape& in : inputs) {
    unknown |= !in.rank_known();
    if (!in.rank_known() || in.rank() == 0) continue;
    if (!any) shape = in;
    auto merged = shape.MergeWith(in);
    if (!merged.ok()) return Annotate(merged.status(), "Shapes of a, b and x are inconsistent");
    shape = *std::move(merged);
    any = true;
  }
  if (!any) return unknown ? PartialShape() : PartialShape(Shape{});
  return shape;
}

Status BetaincKernel(KernelContext& ctx) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1), &x = ctx.input(2);
  TENON_ASSIGN_OR_RETURN(const PartialShape shape,
                         BetaincOutput({a.shape(), b.shape(), x.shape()}));
  TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, shape.ToShape()));
  return DispatchStatus(x.dtype(), TypeList<float, double>(), [&]<typename T>(T) {
    const auto step = [](const Tensor& t) { return t.rank() == 0 ? 0 : 1; };
    ParallelFor(z->num_elements(), 200, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        z->data<T>()[i] = numext::betainc(a.data<T>()[i * step(a)], b.data<T>()[i * step(b)],
                                          x.data<T>()[i * step(x)]);
      }
    });
  });
}

Status BetaincShape(ShapeContext& c) {
  return c.Return(BetaincOutput({c.input(0), c.input(1), c.input(2)}));
}

/// By x alone: x^(a - 1) (1 - x)^(b - 1) / Beta(a, b)
void BetaincGrad(GradContext& g) {
  const Output a = g.in(0), b = g.in(1), x = g.in(2);
  const Output log_beta = Lgamma(a) + Lgamma(b) - Lgamma(a + b);
  const Output dx = g.dy(0) * Exp(Xlog1py(b - 1, -x) + Xlogy(a - 1, x) - log_beta);
  g.dx(2) = SumToOperand(x, g.out(0), dx);
}

}  // namespace

void RegisterSpecialFunctions(OpRegistry& ops) {
  RegisterUnaryList(ops, TypeList<LgammaOp, DigammaOp, NdtriOp, ErfinvOp, BesselI0Op, BesselI0eOp,
                                  BesselI1Op, BesselI1eOp, BesselK0Op, BesselK0eOp, BesselK1Op,
                                  BesselK1eOp, BesselJ0Op, BesselJ1Op, BesselY0Op, BesselY1Op>());
  RegisterBinaryList(ops, TypeList<IgammaOp, IgammacOp, IgammaGradAOp, PolygammaOp, ZetaOp>());
  ops.Add("Betainc", BetaincShape, BetaincKernel)
      .InDomain(0.2, 0.8)
      .Grad(BetaincGrad)
      .Example({Shape{2, 3}, Shape{2, 3}, Shape{2, 3}})
      .Example({Shape{3}, Shape{}, Shape{}});
}

}  // namespace tenon
