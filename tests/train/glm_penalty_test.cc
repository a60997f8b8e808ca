// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "train/glm/fit_glm.h"
#include "train/glm/inference/describe_penalty.h"
#include "train/glm/report/path_picture.h"
#include "train/glm/report/print_glm.h"
#include "train/glm/report/write_glm.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A fit of glmnet's, or with lambda 0 a path of fits, as tests/data/glm/make_penalties.R writes
/// it.
struct PenalisedInR {
  std::string formula, family, weights;
  double alpha = 0, lambda = 0;
  std::map<std::string, std::map<std::string, double>> numbers;
};

std::vector<PenalisedInR> ReadPenalisedFitsOfR() {
  std::ifstream file(SamplePath("glm/penalties.tsv"));
  std::vector<PenalisedInR> fits;
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    const std::string key = StrCat(parts[0], parts[1], parts[2], parts[3], "\t", parts[4]);
    if (key != last) {
      fits.push_back({parts[0], parts[1], parts[2], std::stod(parts[3]), std::stod(parts[4]), {}});
    }
    last = key;
    fits.back().numbers[parts[5]][parts[6]] = std::stod(parts[7]);
  }
  return fits;
}

GlmResult FitLike(const PenalisedInR& wanted, int64_t path, GlmMethod method = GlmMethod::kAuto) {
  GlmOptions options;
  options.method = method;
  options.family = ParseGlmFamily(wanted.family).value();
  options.weights = wanted.weights;
  options.penalty.alpha = wanted.alpha;
  options.penalty.lambda = wanted.lambda;
  options.penalty.path = path;
  auto fit = FitGlm(wanted.formula, {SamplePath("glm/models.csv")}, options);
  EXPECT_TRUE(fit.ok()) << fit.status();
  return fit.value_or(GlmResult());
}

class GlmnetTest : public ::testing::TestWithParam<GlmMethod> {};

TEST_P(GlmnetTest, FitsAreThoseOfGlmnet) {
  const bool is_exact = GetParam() == GlmMethod::kNewton;
  int64_t fits = 0, zeros = 0;
  for (const PenalisedInR& wanted : ReadPenalisedFitsOfR()) {
    if (wanted.lambda == 0) continue;
    SCOPED_TRACE(StrCat(wanted.formula, " ", wanted.family, " ", wanted.weights, " alpha ",
                        wanted.alpha, " lambda ", wanted.lambda));
    const GlmResult fit = FitLike(wanted, 0, GetParam());
    EXPECT_TRUE(fit.converged);
    EXPECT_LE(fit.penalty_residual, is_exact ? 1e-10 : 1e-7);
    if (!is_exact) {
      EXPECT_LE(fit.iterations.size(), 150);
    } else if (wanted.family == "gaussian") {
      EXPECT_LE(fit.iterations.size(), 3);
    } else {
      EXPECT_LE(fit.iterations.size(), 12);
    }
    const auto& numbers = wanted.numbers;
    const double deviation = numbers.at("deviation").at("");
    double squares = 0, sizes = 0;
    size_t found = 0;
    for (const GlmCoefficient& c : fit.coefficients) {
      if (c.status == CoefficientStatus::kReference) continue;
      const std::string name = c.name;
      ASSERT_TRUE(numbers.at("estimate").contains(name)) << name;
      ++found;
      const double of_glmnet = numbers.at("estimate").at(name);
      if (c.is_intercept()) continue;
      const double scale = numbers.at("scale").at(name);
      EXPECT_NEAR(c.estimate * scale, of_glmnet * scale, 1e-5 * deviation) << name;
      EXPECT_EQ(c.status == CoefficientStatus::kZero, of_glmnet == 0) << name;
      EXPECT_TRUE(std::isnan(c.standard_error));
      squares += c.estimate * scale * c.estimate * scale;
      sizes += std::abs(c.estimate * scale);
      zeros += c.estimate == 0;
    }
    EXPECT_EQ(found, numbers.at("estimate").size());
    const double objective =
        fit.residual_deviance / 2 / numbers.at("weight").at("") +
        wanted.lambda * ((1 - wanted.alpha) / 2 * squares / deviation + wanted.alpha * sizes);
    const double of_glmnet = numbers.at("objective").at("");
    EXPECT_LE(objective, of_glmnet * (1 + (is_exact ? 1e-11 : 1e-9)));
    EXPECT_GE(objective, of_glmnet * (1 - 1e-9));
    ++fits;
  }
  EXPECT_EQ(fits, 42);
  EXPECT_GT(zeros, 30);
}

INSTANTIATE_TEST_SUITE_P(Methods, GlmnetTest,
                         ::testing::Values(GlmMethod::kNewton, GlmMethod::kLbfgs));

TEST(GlmPenaltyTest, PathsAreThoseOfGlmnet) {
  int64_t paths = 0;
  for (const PenalisedInR& wanted : ReadPenalisedFitsOfR()) {
    if (wanted.lambda != 0) continue;
    SCOPED_TRACE(StrCat(wanted.formula, " ", wanted.family, " ", wanted.alpha));
    const GlmResult fit = FitLike(wanted, 100);
    ASSERT_GE(fit.path.size(), 30);
    EXPECT_NEAR(static_cast<double>(fit.path.size()), wanted.numbers.at("path length").at(""), 5);
    for (const auto& [text, lambda] : wanted.numbers.at("path lambda")) {
      const GlmPathPoint& point = fit.path[std::stoi(text) - 1];
      EXPECT_NEAR(point.lambda / lambda, 1, 1e-9);
      EXPECT_EQ(point.nonzero, wanted.numbers.at("path df").at(text)) << text;
      EXPECT_NEAR(point.deviance_ratio, wanted.numbers.at("path ratio").at(text), 1e-8);
    }
    for (const GlmPathPoint& point : fit.path) EXPECT_LE(point.residual, 1e-7);
    const auto passes = static_cast<int64_t>(fit.iterations.size());
    if (wanted.family == "gaussian") {
      EXPECT_EQ(passes, 2);
    } else {
      EXPECT_LE(passes, 3 * static_cast<int64_t>(fit.path.size()));
    }
    EXPECT_EQ(fit.path.back().lambda, fit.lasso + fit.lambda);
    ++paths;
  }
  EXPECT_EQ(paths, 12);
}

TEST(GlmPenaltyTest, ALambdaOfAPathIsTheFitOfItsOwn) {
  for (const char* family : {"gaussian", "binomial"}) {
    PenalisedInR wanted = {"y ~ x + z + f + C(g) + big", family, "", 1, 0.013, {}};
    const GlmResult on_path = FitLike(wanted, 40), alone = FitLike(wanted, 0);
    EXPECT_EQ(on_path.lasso, 0.013);
    ASSERT_EQ(on_path.coefficients.size(), alone.coefficients.size());
    for (size_t i = 0; i < alone.coefficients.size(); ++i) {
      EXPECT_NEAR(on_path.coefficients[i].estimate, alone.coefficients[i].estimate, 1e-8);
    }
    EXPECT_GT(on_path.path.front().lambda, 0.013);
    EXPECT_LT(on_path.path.back().lambda, 0.013);
    EXPECT_EQ(on_path.path.front().nonzero, 0);
  }
}

/// The gradient of the objective by a coefficient b is 0: s + ridge x b, where s is the score.
TEST(GlmPenaltyTest, TheRidgeCountsColumnsAsItIsTold) {
  const TemporaryFolder folder;
  std::string text = "x,f,y\n";
  std::vector<double> x, y;
  std::vector<int> level;
  for (int i = 0; i < 60; ++i) {
    x.push_back(3.0 * i + i % 7);
    level.push_back(i % 3);
    y.push_back((i * 7 + i % 5) % 11);
    StrAppend(&text, x.back(), ",",
              "abc"[level.back()] == 'a' ? "a"
              : level.back() == 1        ? "b"
                                         : "c",
              ",", y.back(), "\n");
  }
  const std::string path = folder.Write("t.csv", text);
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / 60;
  for (const double value : x) variance += (value - mean) * (value - mean) / 60;
  for (const StandardisedColumns standardised :
       {StandardisedColumns::kAll, StandardisedColumns::kNumeric, StandardisedColumns::kNone}) {
    GlmOptions options;
    options.penalty = {.ridge = 5, .standardised = standardised};
    const auto fit = FitGlm("y ~ x + f", {path}, options);
    ASSERT_TRUE(fit.ok()) << fit.status();
    const double b0 = fit->coefficients[0].estimate, bx = fit->coefficients[1].estimate,
                 b1 = fit->coefficients[3].estimate, b2 = fit->coefficients[4].estimate;
    double of_one = 0, of_x = 0, of_level = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double rest =
          y[i] - b0 - bx * x[i] - (level[i] == 1 ? b1 : 0) - (level[i] == 2 ? b2 : 0);
      of_one += rest;
      of_x += rest * (x[i] - mean);
      of_level += level[i] == 1 ? rest : 0;
    }
    const bool x_is = standardised != StandardisedColumns::kNone;
    const bool level_is = standardised == StandardisedColumns::kAll;
    EXPECT_NEAR(of_one, 0, 1e-8);
    EXPECT_NEAR(of_x, 5 * bx * (x_is ? variance : 1), 1e-7);
    EXPECT_NEAR(of_level, 5 * b1 * (level_is ? 2.0 / 9 : 1), 1e-8);
    EXPECT_EQ(fit->method, "newton");
    EXPECT_THAT(FormatGlm(*fit), HasSubstr("deviance / 2 + 5 / 2 x sum of b²"));
    EXPECT_THAT(FormatGlm(*fit), HasSubstr("no standard errors"));
    EXPECT_EQ(fit->covariance.size(), 0);
    EXPECT_TRUE(std::isnan(fit->aic));
  }
}

TEST(GlmPenaltyTest, SeparatedLevelsAndSumsOfColumnsStayUnderARidge) {
  std::string text = "x,km,f,y\n";
  for (int i = 0; i < 40; ++i) {
    StrAppend(&text, i % 9, ",", 2 * (i % 9), ",", i % 4, ",", i % 4 == 2 ? 1 : i % 3 == 0, "\n");
  }
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", text);
  GlmOptions options = {.family = GlmFamily::kBinomial};
  options.penalty.ridge = 0.1;
  const auto fit = FitGlm("y ~ x + km + C(f)", {path}, options);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_TRUE(fit->converged);
  EXPECT_EQ(fit->rows_used, 40);
  EXPECT_EQ(fit->NumEstimated(), 6);
  ASSERT_EQ(fit->warnings.size(), 1);
  EXPECT_THAT(fit->warnings[0], HasSubstr("C(f) = 2: all responses of a level are alike"));
  // Both have the same deviation and the same product with everything.
  EXPECT_NEAR(fit->coefficients[1].standardised, fit->coefficients[2].standardised, 1e-10);
  options.separated = SeparatedLevels::kError;
  EXPECT_EQ(FitGlm("y ~ x + km + C(f)", {path}, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(GlmPenaltyTest, AFitGoesOnFromWhereItWas) {
  GlmOptions options = {.family = GlmFamily::kBinomial};
  options.penalty.lambda = 0.01;
  GlmPoint last;
  options.progress = [&](const GlmIteration&, const GlmPoint& at) { last = at; };
  const std::vector<std::string> files = {SamplePath("glm/models.csv")};
  const auto whole = FitGlm("y ~ x + z + f", files, options);
  ASSERT_TRUE(whole.ok()) << whole.status();
  options.start = last;
  const auto again = FitGlm("y ~ x + z + f", files, options);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_LE(again->iterations.size(), 3);
  EXPECT_NEAR(again->null_deviance, whole->null_deviance, 1e-10);
  for (size_t i = 0; i < whole->coefficients.size(); ++i) {
    EXPECT_NEAR(again->coefficients[i].estimate, whole->coefficients[i].estimate, 1e-10);
  }
}

TEST(GlmPenaltyTest, APathIsWrittenAndDrawn) {
  const GlmResult fit = FitLike({"y ~ x + z + f", "binomial", "", 0.5, 0, {}}, 20);
  const std::string csv = CoefficientsPathCsv(fit);
  EXPECT_THAT(csv,
              ::testing::StartsWith("lambda,df,deviance_ratio,residual,(Intercept),x,z,fb,fc\n"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + static_cast<int64_t>(fit.path.size()));
  const std::string svg = PathSvg(fit);
  EXPECT_THAT(svg, HasSubstr("Coefficients under less penalty"));
  EXPECT_THAT(svg, HasSubstr("f c"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(FormatGlm(fit), HasSubstr(" fits, lambda 0.2005 to "));
  const TemporaryFolder folder;
  const auto written = WriteGlm(fit, folder.path());
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(*written, ::testing::IsSupersetOf({"coefficients_path.csv", "path.svg"}));
  EXPECT_THAT(MetricsJson(fit), HasSubstr("\"residual\""));
}

TEST(GlmPenaltyTest, APenaltyThatMeansNothingIsRefused) {
  for (const GlmPenalty& penalty :
       {GlmPenalty{.ridge = -1}, GlmPenalty{.lambda = NAN}, GlmPenalty{.ridge = 1, .lambda = 1},
        GlmPenalty{.lambda = 1, .alpha = 2}, GlmPenalty{.ridge = 1, .path = 5}}) {
    EXPECT_EQ(CheckPenalty(penalty).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(CheckPenalty({}).ok());
}

}  // namespace
}  // namespace tenon
