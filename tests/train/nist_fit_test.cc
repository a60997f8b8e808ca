// SPDX-License-Identifier: Apache-2.0
//
// Linear problems of NIST's Statistical Reference Datasets, whose solutions
// tests/data/glm/make_nist.py knows exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "tests/train/r_rows.h"
#include "train/glm/fit_glm.h"

namespace tenon {
namespace {

struct NistCoefficient {
  std::string name;
  double estimate, standard_error;
};

struct NistProblem {
  std::string name, formula;
  double rows, residual_df, deviation;
  std::vector<NistCoefficient> coefficients;
};

std::vector<NistProblem> ReadNistProblems() {
  std::vector<NistProblem> problems;
  for (const std::vector<std::string>& row : ReadRRows("nist/certified.tsv")) {
    if (row[0] == "problem") {
      problems.push_back({row[1], row[2], RNumber(row[3]), RNumber(row[4]), RNumber(row[5]), {}});
    } else {
      problems.back().coefficients.push_back({row[1], RNumber(row[2]), RNumber(row[3])});
    }
  }
  return problems;
}

GlmResult FitNist(const NistProblem& problem) {
  auto fit = FitGlm(problem.formula, {SamplePath(StrCat("glm/nist/", problem.name, ".csv"))});
  EXPECT_TRUE(fit.ok()) << fit.status();
  return std::move(fit).value();
}

class NistFitTest : public ::testing::TestWithParam<NistProblem> {};

// R has 5.5 digits in wampler5, whose estimates are 1 and their standard errors up to 2e7, and 7.5
// in wampler4.
TEST_P(NistFitTest, EstimatesHaveEightDigits) {
  const NistProblem& problem = GetParam();
  const GlmResult fit = FitNist(problem);
  EXPECT_TRUE(fit.converged);
  for (const std::string& warning : fit.warnings) {
    EXPECT_THAT(warning, ::testing::HasSubstr("nearly determined by the other terms"));
  }
  EXPECT_EQ(fit.rows_used, problem.rows);
  EXPECT_EQ(fit.residual_df, problem.residual_df);
  EXPECT_NEAR(fit.sigma, problem.deviation, 1e-8 * (1 + problem.deviation));
  ASSERT_EQ(fit.coefficients.size(), problem.coefficients.size());
  for (size_t j = 0; j < fit.coefficients.size(); ++j) {
    const GlmCoefficient& found = fit.coefficients[j];
    const NistCoefficient& exact = problem.coefficients[j];
    EXPECT_EQ(found.name, exact.name);
    EXPECT_EQ(found.status, CoefficientStatus::kOk);
    EXPECT_NEAR(found.estimate, exact.estimate, 1e-8 * std::abs(exact.estimate)) << exact.name;
    EXPECT_NEAR(found.standard_error, exact.standard_error,
                1e-8 * (std::abs(exact.estimate) + exact.standard_error))
        << exact.name;
  }
}

std::vector<NistProblem> AllButFilip() {
  std::vector<NistProblem> problems = ReadNistProblems();
  std::erase_if(problems, [](const NistProblem& p) { return p.name == "filip"; });
  return problems;
}

INSTANTIATE_TEST_SUITE_P(Problems, NistFitTest, ::testing::ValuesIn(AllButFilip()),
                         [](const auto& each) { return each.param.name; });

// Powers of a number up to the tenth are sums of each other within the rounding of their products.
// R finds so too.
TEST(NistFilipTest, PowersThatCannotBeToldApartAreSaid) {
  for (const NistProblem& problem : ReadNistProblems()) {
    if (problem.name != "filip") continue;
    const GlmResult fit = FitNist(problem);
    int aliased = 0;
    for (const GlmCoefficient& c : fit.coefficients) {
      aliased += c.status == CoefficientStatus::kAliased ? 1 : 0;
      EXPECT_EQ(c.status == CoefficientStatus::kAliased, std::isnan(c.estimate)) << c.name;
    }
    EXPECT_GT(aliased, 0);
    EXPECT_THAT(fit.warnings, ::testing::Contains(::testing::HasSubstr("cannot be told from")));
    return;
  }
  FAIL() << "no filip in certified.tsv";
}

}  // namespace
}  // namespace tenon
