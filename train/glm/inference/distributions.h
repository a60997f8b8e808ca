// SPDX-License-Identifier: Apache-2.0
#pragma once

// The distributions of test statistics, as R's pnorm, pt, pchisq, pf, qnorm and qt have them: to
// about 1e-13 relative, far into the tails.

namespace tenon {

/// The probability of a value as extreme, which a logarithm still tells where it is 0 as a double.
struct TailProbability {
  double p;
  double log10;
};

/// The probability that a standard normal variable is at least |z| away from 0.
TailProbability NormalTwoSided(double z);
/// The same of Student's distribution with `df` > 0 degrees of freedom.
TailProbability StudentTwoSided(double t, double df);
/// The probability that a chi squared variable is at least `x`.
TailProbability ChiSquaredAbove(double x, double df);
/// The probability that a variable with Fisher's F distribution is at least `f`.
TailProbability FisherAbove(double f, double df1, double df2);

/// The value that a variable is below with this probability, which is in (0, 1).
double NormalQuantile(double probability);
double StudentQuantile(double probability, double df);

}  // namespace tenon
