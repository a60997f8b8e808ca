// SPDX-License-Identifier: Apache-2.0
//
// Functions that are integrals, in double: by the power series where its terms do not cancel, and
// by an asymptotic series or a continued fraction beyond.
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math/math_ops.h"

namespace tenon {
namespace {

using std::numbers::pi;

constexpr double kTiny = std::numeric_limits<double>::epsilon() / 4;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// first + first * ratio(1) + first * ratio(1) * ratio(2) + ..., until terms do not count any more.
template <typename Ratio>
double SumOfSeries(double first, Ratio ratio) {
  double sum = first, term = first;
  for (int k = 1; k < 500; ++k) {
    term *= ratio(k);
    sum += term;
    if (!(std::fabs(term) > kTiny * std::fabs(sum))) break;
  }
  return sum;
}

/// e^(-x^2) times the integral of e^(t^2) from 0 to x.
double DawsonIntegral(double x) {
  if (x == 0 || std::isinf(x)) return 0;
  const double square = x * x;
  if (square > 45) {
    return SumOfSeries(0.5 / x, [&](int k) { return (k - 0.5) / square; });
  }
  double power = 1, sum = 1;
  for (int k = 1; k < 500 && power > kTiny * sum; ++k) {
    power *= square / k;
    sum += power / (2 * k + 1);
  }
  return x * std::exp(-square) * sum;
}

/// The integral of e^t / t from -infinity to x; NaN of negative numbers.
double ExponentialIntegral(double x) {
  if (!(x >= 0)) return kNan;
  if (x > 45) return std::exp(x) * SumOfSeries(1 / x, [&](int k) { return k / x; });
  double power = 1, sum = 0;
  for (int k = 1; k < 500; ++k) {
    power *= x / k;
    sum += power / k;
    if (power < kTiny * sum) break;
  }
  return sum + std::numbers::egamma + std::log(x);
}

/// The integrals of cos(pi t^2 / 2) and, as the imaginary part, sin(pi t^2 / 2) from 0 to x >= 0.
std::complex<double> FresnelIntegrals(double x) {
  using Complex = std::complex<double>;
  if (std::isnan(x)) return {x, x};
  if (x > 36974) return {0.5, 0.5};  // what is left is less than an angle of that size tells
  const double square = x * x;
  if (x < 1.6) {
    // The sum of (i pi x^2 / 2)^k / (k! (2k + 1)).
    Complex term = x, sum = x;
    for (int k = 1; k < 100 && std::abs(term) > kTiny * x; ++k) {
      term *= Complex(0, pi / 2 * square) / static_cast<double>(k);
      sum += term / (2.0 * k + 1);
    }
    return sum;
  }
  // The complementary error function of sqrt(pi) / 2 (1 - i) x, as a continued fraction.
  Complex b(1, -pi * square), h = 1.0 / b, d = h;
  Complex c = 1 / std::numeric_limits<double>::min();
  for (int k = 1; k < 500; ++k) {
    const double a = -(2.0 * k - 1) * (2.0 * k);
    b += 4.0;
    d = 1.0 / (a * d + b);
    c = b + a / c;
    const Complex change = c * d;
    h *= change;
    if (std::abs(change - 1.0) < 4 * kTiny) break;
  }
  h *= Complex(x, -x);
  // The angle modulo a whole turn: pi / 2 times x^2 modulo 4.
  const double angle = pi / 2 * std::fmod(square, 4);
  return Complex(0.5, 0.5) * (1.0 - Complex(std::cos(angle), std::sin(angle)) * h);
}

/// The dilogarithm of 1 - x: minus the integral of log t / (t - 1) from 1 to x.
double SpenceIntegral(double x) {
  if (!(x >= 0)) return kNan;
  if (x == 0) return pi * pi / 6;
  if (std::isinf(x)) return kNan;  // as TensorFlow has it
  if (x > 2) {
    const double log = std::log(x);
    return -log * log / 2 - SpenceIntegral(1 / x);
  }
  if (x < 0.5) return pi * pi / 6 - std::log(x) * std::log1p(-x) - SpenceIntegral(1 - x);
  // In u = -log x: u - u^2 / 4 + the sum of B(2k) u^(2k+1) / (2k+1)!, with Bernoulli's numbers.
  constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                   5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
                                   43867.0 / 798, -174611.0 / 330};
  const double u = -std::log(x);
  double power = u, sum = u - u * u / 4;
  int k = 1;
  for (const double b : kBernoulli) {
    power *= u * u / ((2.0 * k) * (2.0 * k + 1));
    sum += b * power;
    ++k;
  }
  return sum;
}

template <OpName kOpName, auto kFunction>
struct Integral : Elementwise<kOpName, FloatTypes> {
  static constexpr double kCost = 100;
  static constexpr Domain kDomain{0.3, 3};
  static auto Apply(auto x) { return static_cast<decltype(x)>(kFunction(x)); }
};

struct DawsnOp : Integral<"Dawsn", DawsonIntegral> {
  static Output Grad(Output x, Output y, Output dy) { return dy * (1 - 2 * x * y); }
};

struct ExpintOp : Integral<"Expint", ExponentialIntegral> {
  static Output Grad(Output x, Output, Output dy) { return dy * Exp(x) / x; }
};

struct FresnelCosOp : Integral<"FresnelCos", [](double x) {
  const double value = FresnelIntegrals(std::fabs(x)).real();
  return x < 0 ? -value : value;
}> {
  static Output Grad(Output x, Output, Output dy) { return dy * Cos(pi / 2 * Square(x)); }
};

struct FresnelSinOp : Integral<"FresnelSin", [](double x) {
  const double value = FresnelIntegrals(std::fabs(x)).imag();
  return x < 0 ? -value : value;
}> {
  static Output Grad(Output x, Output, Output dy) { return dy * Sin(pi / 2 * Square(x)); }
};

struct SpenceOp : Integral<"Spence", SpenceIntegral> {
  static Output Grad(Output x, Output, Output dy) {
    const Output one = Const(1, {.dtype = x.dtype()});
    return dy * SelectV2(Equal(x, one), -OnesLike(x), Log(x) / (1 - x));
  }
};

}  // namespace

void RegisterIntegrals(OpRegistry& ops) {
  RegisterUnaryList(ops, TypeList<DawsnOp, ExpintOp, FresnelCosOp, FresnelSinOp, SpenceOp>());
}

}  // namespace tenon
