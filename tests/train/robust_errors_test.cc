// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "train/glm/fit_glm.h"
#include "train/glm/report/print_glm.h"
#include "train/glm/report/write_glm.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

/// The fits of tests/data/glm/make_robust.R.
TEST(RobustErrorsTest, StandardErrorsAreSandwichs) {
  std::ifstream file(SamplePath("glm/robust.tsv"));
  GlmResult fit;
  std::string fitted;
  int64_t lines = 0, models = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    SCOPED_TRACE(line);
    const std::string key = StrCat(parts[0], parts[1], parts[2]);
    if (key != fitted) {
      GlmOptions options;
      options.family = ParseGlmFamily(parts[1]).value();
      options.weights = parts[2];
      options.robust = true;
      auto made = FitGlm(parts[0], {SamplePath("glm/models.csv")}, options);
      ASSERT_TRUE(made.ok()) << made.status();
      fit = *std::move(made);
      fitted = key;
      ++models;
    }
    const auto c = std::find_if(fit.coefficients.begin(), fit.coefficients.end(),
                                [&](const GlmCoefficient& own) { return own.name == parts[3]; });
    ASSERT_NE(c, fit.coefficients.end());
    EXPECT_NEAR(c->standard_error / std::stod(parts[5]), 1, 1e-8);
    ++lines;
  }
  EXPECT_EQ(models, 8);
  EXPECT_GT(lines, 40);
}

TEST(RobustErrorsTest, TheyAreSaidAndNotUnderAPenalty) {
  GlmOptions options;
  options.robust = true;
  const std::vector<std::string> files = {SamplePath("glm/models.csv")};
  const auto fit = FitGlm("level ~ x + z + f", files, options);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_THAT(FormatGlm(*fit), HasSubstr("robust standard errors (HC1)"));
  EXPECT_THAT(MetricsJson(*fit), HasSubstr("\"HC1\""));
  // The test of one coefficient is the square of its t.
  const auto one = FitGlm("level ~ x", files, options);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_NEAR(one->f_statistic / std::pow(one->coefficients[1].statistic, 2), 1, 1e-12);
  options.penalty.ridge = 1;
  EXPECT_EQ(FitGlm("level ~ x", files, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tenon
