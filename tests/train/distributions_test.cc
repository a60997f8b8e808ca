// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/train/r_rows.h"

namespace tenon {
namespace {

constexpr double kTolerance = 1e-12;

TailProbability TailOf(const std::string& kind, const std::vector<double>& arguments) {
  if (kind == "normal") return NormalTwoSided(arguments[0]);
  if (kind == "student") return StudentTwoSided(arguments[0], arguments[1]);
  if (kind == "chi_squared") return ChiSquaredAbove(arguments[0], arguments[1]);
  return FisherAbove(arguments[0], arguments[1], arguments[2]);
}

TEST(DistributionsTest, ProbabilitiesAndQuantilesAreRsFarIntoTheTails) {
  int64_t tails = 0, quantiles = 0;
  for (const std::vector<std::string>& row : ReadRRows("distributions.tsv")) {
    SCOPED_TRACE(Join(row, " "));
    std::vector<double> arguments;
    for (size_t i = 1; i + 1 < row.size(); ++i) arguments.push_back(RNumber(row[i]));
    const double wanted = RNumber(row.back());
    if (row[0].ends_with("quantile")) {
      const double found = row[0] == "normal_quantile"
                               ? NormalQuantile(arguments[0])
                               : StudentQuantile(arguments[0], arguments[1]);
      EXPECT_TRUE(std::abs(found - wanted) <= kTolerance * (std::abs(wanted) + 1e-3)) << found;
      ++quantiles;
      continue;
    }
    const TailProbability tail = TailOf(row[0], arguments);
    if (wanted > -690) {
      EXPECT_TRUE(IsWithin(tail.p, std::exp(wanted), kTolerance)) << tail.p;
    }
    if (wanted < -1) {
      EXPECT_TRUE(IsWithin(tail.log10 * std::log(10.0), wanted, kTolerance)) << tail.log10;
      ++tails;
    }
  }
  EXPECT_GT(tails, 400);
  EXPECT_GT(quantiles, 100);
}

/// The values are sums of the power series of the incomplete beta function in 50 digits.
TEST(DistributionsTest, DigitsThatRLosesAreThere) {
  EXPECT_NEAR(FisherAbove(330.3, 11, 261730).log10, -770.61306475862898525, 1e-10);
  EXPECT_NEAR(FisherAbove(1000, 11, 261730).log10, -2324.7559239360394587, 1e-10);
  EXPECT_NEAR(StudentQuantile(0.999999, 0.5) / 102849115625.71901, 1, 1e-13);
}

TEST(DistributionsTest, TheTwoWaysToATailMeet) {
  // The logarithm takes over where the probability passes 1e-290.
  const auto expect_smooth = [](auto tail, double from, double to) {
    double before = tail(from).log10, slope = 0;
    const double step = (to - from) / 200;
    for (int i = 1; i <= 200; ++i) {
      const double now = tail(from + i * step).log10;
      const double change = now - before;
      EXPECT_LT(change, 0);
      if (i > 1) EXPECT_NEAR(change / slope, 1, 0.02) << from + i * step;
      before = now;
      slope = change;
    }
    EXPECT_GT(tail(from).log10, -290);
    EXPECT_LT(before, -290);
  };
  expect_smooth([](double z) { return NormalTwoSided(z); }, 36, 37);
  expect_smooth([](double t) { return StudentTwoSided(t, 5000); }, 38, 41);
  expect_smooth([](double x) { return ChiSquaredAbove(x, 15); }, 1350, 1450);
  expect_smooth([](double f) { return FisherAbove(f, 4, 2000); }, 400, 600);
}

TEST(DistributionsTest, WhatIsNoStatisticHasNoProbability) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(NormalTwoSided(nan).p));
  EXPECT_TRUE(std::isnan(StudentTwoSided(nan, 3).p));
  EXPECT_TRUE(std::isnan(StudentTwoSided(1, 0).p));
  EXPECT_TRUE(std::isnan(ChiSquaredAbove(nan, 3).log10));
  EXPECT_TRUE(std::isnan(FisherAbove(1, 3, 0).p));
  EXPECT_EQ(NormalTwoSided(-infinite).p, 0);
  EXPECT_EQ(NormalTwoSided(infinite).log10, -infinite);
  EXPECT_EQ(StudentTwoSided(infinite, 4).log10, -infinite);
  EXPECT_EQ(ChiSquaredAbove(infinite, 4).log10, -infinite);
  EXPECT_EQ(FisherAbove(infinite, 4, 5).log10, -infinite);
  EXPECT_EQ(ChiSquaredAbove(0, 4).p, 1);
  EXPECT_EQ(FisherAbove(0, 4, 5).p, 1);
}

}  // namespace
}  // namespace tenon
