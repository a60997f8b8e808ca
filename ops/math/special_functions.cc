// SPDX-License-Identifier: Apache-2.0
#include "ops/math/special_functions.h"

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/broadcast_gradient.h"
#include "ops/composition.h"
#include "ops/math/math_ops.h"

namespace tenon {
namespace elementwise {

Output LgammaOp::Grad(Output x, Output, Output dy) { return dy * Digamma(x); }

Output DigammaOp::Grad(Output x, Output, Output dy) { return dy * Polygamma(OnesLike(x), x); }

Output NdtriOp::Grad(Output, Output y, Output dy) {
  return dy * (std::sqrt(2 * std::numbers::pi) * Exp(Square(y) / 2));
}

Output ErfinvOp::Grad(Output, Output y, Output dy) {
  return dy * (1 / (2 * std::numbers::inv_sqrtpi) * Exp(Square(y)));
}

// Bessel functions. At 0 the derivatives of I1 and J1 are limits.

Output UnlessZero(Output x, double at_zero, Output otherwise) {
  const Output zero = Const(0, {.dtype = x.dtype()});
  return SelectV2(Equal(x, zero), Const(at_zero, {.dtype = x.dtype()}), otherwise);
}

Output BesselI0Op::Grad(Output x, Output, Output dy) { return dy * BesselI1(x); }

Output BesselI0eOp::Grad(Output x, Output y, Output dy) {
  return dy * (BesselI1e(x) - Sign(x) * y);
}

Output BesselI1Op::Grad(Output x, Output y, Output dy) {
  // The series begins x / 2, but TensorFlow has 1 here.
  return dy * UnlessZero(x, 1, BesselI0(x) - y / x);
}

Output BesselI1eOp::Grad(Output x, Output y, Output dy) {
  return dy * UnlessZero(x, 0.5, BesselI0e(x) - y * (Sign(x) + Reciprocal(x)));
}

Output BesselK0Op::Grad(Output x, Output, Output dy) { return -dy * BesselK1(x); }

Output BesselK0eOp::Grad(Output x, Output y, Output dy) { return dy * (y - BesselK1e(x)); }

Output BesselK1Op::Grad(Output x, Output y, Output dy) { return dy * (-BesselK0(x) - y / x); }

Output BesselK1eOp::Grad(Output x, Output y, Output dy) {
  return dy * (y * (1 - Reciprocal(x)) - BesselK0e(x));
}

Output BesselJ0Op::Grad(Output x, Output, Output dy) { return -dy * BesselJ1(x); }

Output BesselJ1Op::Grad(Output x, Output y, Output dy) {
  return dy * UnlessZero(x, 0.5, BesselJ0(x) - y / x);
}

Output BesselY0Op::Grad(Output x, Output, Output dy) { return -dy * BesselY1(x); }

Output BesselY1Op::Grad(Output x, Output y, Output dy) { return dy * (BesselY0(x) - y / x); }

GradientPair IgammaOp::Grad(Output a, Output x, Output, Output dz) {
  return {dz * IgammaGradA(a, x), dz * Exp((a - 1) * Log(x) - x - Lgamma(a))};
}

GradientPair IgammacOp::Grad(Output a, Output x, Output z, Output dz) {
  return IgammaOp::Grad(a, x, z, -dz);
}

// TensorFlow differentiates these by their second argument only.

GradientPair PolygammaOp::Grad(Output a, Output x, Output, Output dz) {
  return {Output(), dz * Polygamma(a + 1, x)};
}

GradientPair ZetaOp::Grad(Output x, Output q, Output, Output dz) {
  return {Output(), -dz * x * Zeta(x + 1, q)};
}

}  // namespace elementwise

namespace {

/// The shape of the result, for inputs whose shapes may be unknown.
StatusOr<PartialShape> BetaincShapes(absl::Span<const PartialShape> inputs) {
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

}  // namespace

StatusOr<Shape> BetaincOutput(const KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(
      const PartialShape shape,
      BetaincShapes({ctx.input(0).shape(), ctx.input(1).shape(), ctx.input(2).shape()}));
  return shape.ToShape();
}

namespace {

Status BetaincKernel(KernelContext& ctx, const Tensor& a, const Tensor& b, const Tensor& x) {
  TENON_ASSIGN_OR_RETURN(const Shape shape, BetaincOutput(ctx));
  TENON_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, shape));
  return DispatchStatus(x.dtype(), TypeList<float, double>(), [&]<typename T>(T) {
    const auto step = [](const Tensor& t) { return t.rank() == 0 ? 0 : 1; };
    ParallelFor(z->num_elements(), 200, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        z->data<T>()[i] =
            BetaincOf(a.data<T>()[i * step(a)], b.data<T>()[i * step(b)], x.data<T>()[i * step(x)]);
      }
    });
  });
}

Status BetaincShape(ShapeContext& c) {
  return c.Return(BetaincShapes({c.input(0), c.input(1), c.input(2)}));
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
  RegisterUnaryList(ops, elementwise::SpecialFunctions());
  RegisterBinaryList(ops, elementwise::SpecialFunctions2());
  ops.Add("Betainc", BetaincShape, BetaincKernel)
      .InDomain(0.2, 0.8)
      .Grad(BetaincGrad)
      .Example({Shape{2, 3}, Shape{2, 3}, Shape{2, 3}})
      .Example({Shape{3}, Shape{}, Shape{}});
}

}  // namespace tenon
