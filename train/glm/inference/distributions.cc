// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/distributions.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

namespace policies = boost::math::policies;
/// Arguments outside of a function's domain give NaN, and no exception.
using Quiet = policies::policy<policies::domain_error<policies::ignore_error>,
                               policies::pole_error<policies::ignore_error>,
                               policies::overflow_error<policies::ignore_error>,
                               policies::underflow_error<policies::ignore_error>,
                               policies::denorm_error<policies::ignore_error>,
                               policies::rounding_error<policies::ignore_error>,
                               policies::evaluation_error<policies::ignore_error>>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
/// Probabilities below this are computed as logarithms: doubles lose digits from 2e-308 on.
constexpr double kLeast = 1e-290;
/// A degree of freedom from which on Student's distribution is the normal one to all digits.
constexpr double kManyDf = 1e18;
constexpr int kMostFractionTerms = 100000;
constexpr double kRounding = 1e-16;

TailProbability OfProbability(double p) { return {p, std::log10(p)}; }
TailProbability OfLog(double log_p) { return {std::exp(log_p), log_p / std::log(10.0)}; }

/// The continued fraction b0 + a1 / (b1 + a2 / (b2 + ...)) by Lentz's method, with Thompson and
/// Barnett's care for zeros (Journal of Computational Physics 64, 1986). `term(k)` gives {ak, bk}.
template <typename Term>
double ContinuedFraction(double b0, const Term& term) {
  constexpr double kTiny = 1e-300;
  double value = b0 == 0 ? kTiny : b0, c = value, d = 0;
  for (int k = 1; k < kMostFractionTerms; ++k) {
    const auto [a, b] = term(k);
    d = b + a * d;
    c = b + a / c;
    d = 1 / (d == 0 ? kTiny : d);
    if (c == 0) c = kTiny;
    value *= c * d;
    if (std::abs(c * d - 1) < kRounding * 2) break;
  }
  return value;
}

/// A coefficient of a continued fraction.
struct FractionTerm {
  double a, b;
};

/// log B(a, b).
double LogBeta(double a, double b) {
  const double ratio = boost::math::tgamma_delta_ratio(std::max(a, b), std::min(a, b), Quiet());
  const double gamma = boost::math::tgamma(std::min(a, b), Quiet());
  if (ratio > kLeast && std::isfinite(gamma)) return std::log(ratio) + std::log(gamma);
  return boost::math::lgamma(a, Quiet()) + boost::math::lgamma(b, Quiet()) -
         boost::math::lgamma(a + b, Quiet());
}

/// The logarithm of the regularised incomplete beta function I_x(a, b) for an x well below
/// a / (a + b), where y is 1 - x. The continued fraction of DiDonato and Morris (ACM Transactions
/// on Mathematical Software 18, 1992, algorithm 708) has no differences of large numbers when a is
/// large and x almost 1, as they are with many degrees of freedom.
double LogSmallBeta(double a, double b, double x, double y) {
  const double lambda = a * y - b * x;
  const auto denominator = [=](double n) {
    return n + n * (b - n) * x / (a + 2 * n - 1) +
           (a + n) / (a + 2 * n + 1) * (lambda + 1 + n * (1 + y));
  };
  const double fraction = ContinuedFraction(a / (a + 1) * (lambda + 1), [=](double n) {
    const double numerator =
        (a + n - 1) / (a + 2 * n - 1) * ((a + b + n - 1) / (a + 2 * n - 1)) * n * (b - n) * x * x;
    return FractionTerm{numerator, denominator(n)};
  });
  // The smaller one of x and y has all its digits, and so has the logarithm of the other.
  const double log_x = x < 0.5 ? std::log(x) : std::log1p(-y);
  const double log_y = x < 0.5 ? std::log1p(-x) : std::log(y);
  return a * log_x + b * log_y - LogBeta(a, b) - std::log(fraction);
}

/// I_x(a, b) where `odds` is (1 - x) / x.
TailProbability BetaBelow(double a, double b, double odds) {
  const double x = 1 / (1 + odds), rest = std::isinf(odds) ? 1 : odds / (1 + odds);
  double p = 0;
  if (x < rest) {
    p = boost::math::ibeta(a, b, x, Quiet());
  } else {
    // The argument that is small keeps its digits, and so does the smaller of both functions.
    const double above = boost::math::ibeta(b, a, rest, Quiet());
    p = above < 0.5 ? 1 - above : boost::math::ibetac(b, a, rest, Quiet());
  }
  if (p > kLeast || !(odds > 0)) return OfProbability(p);
  if (x == 0) return {0, -std::numeric_limits<double>::infinity()};
  return OfLog(LogSmallBeta(a, b, x, rest));
}

}  // namespace

TailProbability NormalTwoSided(double z) {
  const double x = std::abs(z) / std::sqrt(2.0);
  const double p = std::erfc(x);
  if (!(p < kLeast)) return OfProbability(p);
  if (std::isinf(x)) return {0, -x};
  // erfc(x) = exp(-x^2) / (x sqrt(pi)) (1 - 1 / (2 x^2) + ...), an asymptotic series (DLMF 7.12.1);
  // x is above 25.
  const double y = 1 / (z * z);
  const double series = 1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y * (1 - 9 * y))));
  return OfLog(-z * z / 2 - std::log(std::abs(z)) - std::log(std::acos(-1.0) / 2) / 2 +
               std::log(series));
}

TailProbability StudentTwoSided(double t, double df) {
  if (std::isnan(t) || !(df > 0)) return {kNan, kNan};
  if (df > kManyDf) return NormalTwoSided(t);
  return BetaBelow(df / 2, 0.5, t / df * t);
}

TailProbability ChiSquaredAbove(double x, double df) {
  if (std::isnan(x) || !(df > 0)) return {kNan, kNan};
  if (x <= 0) return {1, 0};
  if (std::isinf(x)) return {0, -x};
  const double a = df / 2, y = x / 2;
  const double p = boost::math::gamma_q(a, y, Quiet());
  if (p > kLeast) return OfProbability(p);
  // The upper incomplete gamma function (DLMF 8.9.2, in its even part).
  const double fraction = ContinuedFraction(y + 1 - a, [a, y](double k) {
    return FractionTerm{-k * (k - a), y + 2 * k + 1 - a};
  });
  return OfLog(a * std::log(y) - y - boost::math::lgamma(a, Quiet()) - std::log(fraction));
}

TailProbability FisherAbove(double f, double df1, double df2) {
  if (std::isnan(f) || !(df1 > 0) || !(df2 > 0)) return {kNan, kNan};
  if (f <= 0) return {1, 0};
  return BetaBelow(df2 / 2, df1 / 2, f / df2 * df1);
}

double NormalQuantile(double probability) {
  return boost::math::quantile(boost::math::normal_distribution<double, Quiet>(), probability);
}

double StudentQuantile(double probability, double df) {
  if (df > kManyDf) return NormalQuantile(probability);
  const boost::math::students_t_distribution<double, Quiet> student(df);
  const double above = std::min(probability, 1 - probability);
  double t = boost::math::quantile(boost::math::complement(student, above));
  // Boost's search ends some digits early where the tail is heavy.
  for (int i = 0; i < 2 && std::isfinite(t) && t != 0; ++i) {
    t += (StudentTwoSided(t, df).p / 2 - above) / boost::math::pdf(student, t);
  }
  return probability < 0.5 ? -t : t;
}

}  // namespace tenon
