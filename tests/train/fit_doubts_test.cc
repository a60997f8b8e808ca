// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/fit_doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "train/glm/fit_glm.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

GlmResult FitOfText(const std::string& formula, const std::string& text, GlmFamily family,
                    std::optional<GlmLink> link = std::nullopt) {
  const TemporaryFolder folder;
  const auto fit = FitGlm(formula, {folder.Write("t.csv", text)}, {.family = family, .link = link});
  EXPECT_TRUE(fit.ok()) << fit.status();
  return fit.value_or(GlmResult());
}

TEST(FitDoubtsTest, ANumberThatOthersNearlyDetermineIsNamed) {
  std::string text = "a,b,c,f,y\n";
  for (int i = 0; i < 200; ++i) {
    const int a = i * 37 % 101, b = i * 53 % 97;
    StrAppend(&text, a, ",", b, ",", a + b + 0.1 * (i * 29 % 7), ",", i % 50 == 0 ? "p" : "q", ",",
              (i * 17) % 23, "\n");
  }
  const GlmResult fit = FitOfText("y ~ a + b + c + f", text, GlmFamily::kGaussian);
  ASSERT_EQ(fit.warnings.size(), 1);
  EXPECT_THAT(fit.warnings[0], HasSubstr("c is nearly determined by the other terms: variance "
                                         "inflation "));
  EXPECT_THAT(fit.warnings[0], HasSubstr("; so are a ("));
  EXPECT_EQ(FitOfText("y ~ a + b + f", text, GlmFamily::kGaussian).warnings.size(), 0);
}

TEST(FitDoubtsTest, AColumnThatIsNearlyASumIsNamed) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 300; ++i) {
    const int a = i * 37 % 101;
    StrAppend(&text, a, ",", 2 * a + 0.003 * (i % 3), ",", (i * 17) % 23, "\n");
  }
  const GlmResult fit = FitOfText("y ~ a + b", text, GlmFamily::kGaussian);
  ASSERT_EQ(fit.warnings.size(), 1);
  EXPECT_THAT(fit.warnings[0], HasSubstr("variance inflation"));
}

/// nv is 1 in few rows, all of which are positive: its coefficient has no finite estimate, though
/// it is no level.
TEST(FitDoubtsTest, ANumberThatSeparatesIsNamed) {
  std::string text = "nv,pi,y\n";
  for (int i = 0; i < 120; ++i) {
    const int nv = i % 9 == 0;
    StrAppend(&text, nv, ",", i * 31 % 47, ",", nv == 1 || (i * 31 % 47) + (i * 13 % 29) < 30,
              "\n");
  }
  for (const GlmLink link : {GlmLink::kLogit, GlmLink::kProbit, GlmLink::kCloglog}) {
    const GlmResult fit = FitOfText("y ~ nv + pi", text, GlmFamily::kBinomial, link);
    EXPECT_TRUE(fit.converged);
    ASSERT_EQ(fit.warnings.size(), 1);
    EXPECT_THAT(fit.warnings[0], HasSubstr("nv separates the responses"));
  }
  const GlmResult fine = FitOfText("y ~ pi", text, GlmFamily::kBinomial);
  EXPECT_TRUE(fine.warnings.empty());
}

/// Where a is above b all are positive, and none where b is above a.
TEST(FitDoubtsTest, NumbersThatSeparateTogetherAreNamed) {
  std::string text = "a,b,x,y\n";
  for (int i = 0; i < 200; ++i) {
    const int a = i % 2, b = i / 2 % 2;
    StrAppend(&text, a, ",", b, ",", i * 31 % 47, ",", a > b || (a == b && i % 3 == 0), "\n");
  }
  for (const GlmLink link : {GlmLink::kLogit, GlmLink::kProbit, GlmLink::kCloglog}) {
    const GlmResult fit = FitOfText("y ~ a + b + x", text, GlmFamily::kBinomial, link);
    ASSERT_EQ(fit.warnings.size(), 1);
    EXPECT_THAT(fit.warnings[0], HasSubstr("a, b together separate the responses"));
    EXPECT_THAT(fit.warnings[0], Not(HasSubstr("x")));
  }
}

TEST(FitDoubtsTest, AThresholdThatSeparatesAllIsNamed) {
  std::string text = "x,z,y\n";
  for (int i = 0; i < 90; ++i) StrAppend(&text, i, ",", i * 31 % 47, ",", i >= 40, "\n");
  const GlmResult fit = FitOfText("y ~ x", text, GlmFamily::kBinomial);
  ASSERT_FALSE(fit.warnings.empty());
  EXPECT_THAT(fit.warnings.back(), HasSubstr("x separates the responses"));
}

TEST(FitDoubtsTest, CountsThatAreAllZeroSeparate) {
  std::string text = "x,z,y\n";
  for (int i = 0; i < 90; ++i) {
    StrAppend(&text, i % 5 == 0, ",", i * 31 % 47, ",", i % 5 == 0 ? 0 : i % 4, "\n");
  }
  const GlmResult fit = FitOfText("y ~ x + z", text, GlmFamily::kPoisson);
  ASSERT_EQ(fit.warnings.size(), 1);
  EXPECT_THAT(fit.warnings[0], HasSubstr("x separates the responses"));
}

TEST(FitDoubtsTest, ARareNumberThatSeparatesIsNamed) {
  std::string text = "rare,x,y\n";
  for (int i = 0; i < 20000; ++i) {
    StrAppend(&text, i % 10000 == 7, ",", i * 31 % 47, ",", i % 10000 != 7 && i % 3 == 0, "\n");
  }
  const GlmResult fit = FitOfText("y ~ rare + x", text, GlmFamily::kBinomial);
  ASSERT_EQ(fit.warnings.size(), 1);
  EXPECT_THAT(fit.warnings[0], HasSubstr("rare separates the responses"));
}

TEST(FitDoubtsTest, ALevelWithOneOtherResponseSeparatesNothing) {
  std::string text = "f,x,y\n";
  for (int i = 0; i < 4000; ++i) {
    const bool is_rare = i % 2 == 0;
    StrAppend(&text, is_rare ? "a" : "b", ",", i * 31 % 47, ",", is_rare ? i == 6 : i % 3 == 0,
              "\n");
  }
  const GlmResult fit = FitOfText("y ~ f + x", text, GlmFamily::kBinomial);
  EXPECT_TRUE(fit.converged);
  EXPECT_TRUE(fit.warnings.empty());
}

}  // namespace
}  // namespace tenon
