// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/inference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/train/r_fits.h"

namespace tenon {
namespace {

/// A result as it is before inference: estimates, their statuses, deviances, dispersion.
GlmResult WithoutInference(const GlmResult& full) {
  GlmResult fit = full;
  for (GlmCoefficient& c : fit.coefficients) {
    c = {.term = c.term,
         .level = c.level,
         .name = c.name,
         .status = c.status,
         .estimate = c.estimate};
  }
  fit.terms.clear();
  fit.covariance = {};
  fit.r2 = fit.adjusted_r2 = fit.sigma = fit.f_statistic = fit.f_p_value = fit.f_log10_p =
      kNotGiven;
  fit.f_df1 = fit.f_df2 = 0;
  return fit;
}

void ExpectCoefficients(const GlmResult& found, const GlmResult& wanted) {
  ASSERT_EQ(found.coefficients.size(), wanted.coefficients.size());
  for (size_t i = 0; i < wanted.coefficients.size(); ++i) {
    const GlmCoefficient &a = found.coefficients[i], &b = wanted.coefficients[i];
    SCOPED_TRACE(b.name);
    EXPECT_TRUE(IsWithin(a.standard_error, b.standard_error, 1e-12)) << a.standard_error;
    EXPECT_TRUE(IsWithin(a.statistic, b.statistic, 1e-12)) << a.statistic;
    EXPECT_TRUE(IsWithin(a.p_value, b.p_value, 1e-10)) << a.p_value;
    EXPECT_TRUE(IsWithin(a.log10_p, b.log10_p, 1e-11)) << a.log10_p;
    EXPECT_TRUE(IsWithin(a.lower, b.lower, 1e-11)) << a.lower;
    EXPECT_TRUE(IsWithin(a.upper, b.upper, 1e-11)) << a.upper;
  }
}

TEST(InferenceTest, StandardErrorsAndTestsAreThoseOfRsSummaries) {
  for (const std::string name : {"cars", "origin", "longley", "infert", "breaks", "esoph"}) {
    SCOPED_TRACE(name);
    const GlmResult wanted = RFit(name);
    GlmResult found = WithoutInference(wanted);
    AddInference(wanted.covariance, &found);
    ExpectCoefficients(found, wanted);
    size_t next = 0;
    for (const GlmTerm& a : found.terms) {
      if (a.df == 0) continue;
      ASSERT_LT(next, wanted.terms.size());
      const GlmTerm& b = wanted.terms[next++];
      SCOPED_TRACE(b.label);
      EXPECT_EQ(a.label, b.label);
      EXPECT_EQ(a.df, b.df);
      EXPECT_TRUE(IsWithin(a.chi_squared, b.chi_squared, 1e-9)) << a.chi_squared;
      EXPECT_TRUE(IsWithin(a.log10_p, b.log10_p, 1e-9)) << a.log10_p;
      EXPECT_TRUE(IsWithin(a.p_value, b.p_value, 1e-8)) << a.p_value;
    }
    EXPECT_EQ(next, wanted.terms.size());
    EXPECT_TRUE(IsWithin(found.r2, wanted.r2, 1e-12));
    EXPECT_TRUE(IsWithin(found.adjusted_r2, wanted.adjusted_r2, 1e-12));
    EXPECT_TRUE(IsWithin(found.sigma, wanted.sigma, 1e-12));
    EXPECT_TRUE(IsWithin(found.f_statistic, wanted.f_statistic, 1e-11));
    EXPECT_TRUE(IsWithin(found.f_log10_p, wanted.f_log10_p, 1e-11));
    EXPECT_EQ(found.f_df1, wanted.f_df1);
    EXPECT_EQ(found.f_df2, wanted.f_df2);
    EXPECT_EQ(found.covariance.blocks().others, wanted.covariance.blocks().others);
  }
}

TEST(InferenceTest, ATermWhoseColumnsAreAllAliasedHasNoTest) {
  GlmResult fit = RFit("cars");
  AddInference(fit.covariance, &fit);
  ASSERT_EQ(fit.terms.size(), 5u);
  EXPECT_EQ(fit.terms[2].label, "tons");
  EXPECT_EQ(fit.terms[2].df, 0);
  EXPECT_TRUE(std::isnan(fit.terms[2].chi_squared));
}

TEST(InferenceTest, APenaltyLeavesNoTests) {
  GlmResult fit = WithoutInference(RFit("infert"));
  fit.ridge = 1;
  AddInference(GlmCovariance(), &fit);
  for (const GlmCoefficient& c : fit.coefficients) EXPECT_TRUE(std::isnan(c.standard_error));
  ASSERT_EQ(fit.terms.size(), 5u);
  EXPECT_EQ(fit.terms[2].df, 2);
  EXPECT_TRUE(std::isnan(fit.terms[2].p_value));
  EXPECT_EQ(fit.covariance.size(), 0);
}

TEST(InferenceTest, AModelWithoutDegreesOfFreedomHasNoErrors) {
  GlmResult fit;
  fit.dispersion_is_estimated = true;
  fit.dispersion = kNotGiven;
  fit.null_deviance = 2;
  fit.residual_deviance = 0;
  fit.coefficients = {{.term = "(Intercept)", .estimate = 1}, {.term = "x", .estimate = 2}};
  GlmCovariance::Blocks blocks;
  blocks.others.assign(4, kNotGiven);
  AddInference(GlmCovariance(std::move(blocks)), &fit);
  EXPECT_EQ(fit.r2, 1);
  EXPECT_TRUE(std::isnan(fit.adjusted_r2));
  EXPECT_TRUE(std::isnan(fit.f_p_value));
  EXPECT_TRUE(std::isnan(fit.coefficients[1].standard_error));
  EXPECT_TRUE(std::isnan(fit.coefficients[1].p_value));
}

}  // namespace
}  // namespace tenon
