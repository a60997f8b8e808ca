// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/quasi_newton.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/strings.h"
#include "tests/data/sample_files.h"
#include "train/glm/fit_glm.h"
#include "train/glm/report/covariance_file.h"
#include "train/glm/report/model_file.h"
#include "train/glm/report/print_glm.h"
#include "train/glm/report/write_glm.h"
#include "train/glm/solvers/limited_memory.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

/// A valley that bends: 100 (y - x²)² + (1 - x)².
StatusOr<double> Valley(const Eigen::VectorXd& at, Eigen::VectorXd* gradient) {
  const double x = at[0], rest = at[1] - x * x;
  *gradient = Eigen::Vector2d(-400 * x * rest - 2 * (1 - x), 200 * rest);
  return 100 * rest * rest + (1 - x) * (1 - x);
}

TEST(LimitedMemoryTest, GoesDownAValley) {
  Eigen::VectorXd x = Eigen::Vector2d(-1.2, 1);
  int steps = 0;
  const SmoothProblem problem = {Valley, [&] { return ++steps == 100; }};
  ASSERT_TRUE(MinimiseWithLimitedMemory(problem, &x).ok());
  EXPECT_LT(steps, 60);
  EXPECT_NEAR(x[0], 1, 1e-6);
  EXPECT_NEAR(x[1], 1, 1e-6);
}

TEST(LimitedMemoryTest, AbsoluteValuesMakeNumbersZero) {
  // (x - c)² / 2 + |x|, but for the first, which is free.
  const Eigen::VectorXd c = (Eigen::VectorXd(4) << 0.3, 3, -0.5, -2).finished();
  SmoothProblem problem;
  problem.evaluate = [&](const Eigen::VectorXd& x, Eigen::VectorXd* gradient) -> StatusOr<double> {
    *gradient = x - c;
    return gradient->squaredNorm() / 2;
  };
  problem.is_done = [] { return false; };
  problem.lasso = 1;
  problem.first = 1;
  Eigen::VectorXd x = Eigen::VectorXd::Zero(4);
  ASSERT_TRUE(MinimiseWithLimitedMemory(problem, &x).ok());
  EXPECT_NEAR(x[0], 0.3, 1e-9);
  EXPECT_NEAR(x[1], 2, 1e-9);
  EXPECT_EQ(x[2], 0);
  EXPECT_NEAR(x[3], -1, 1e-9);
}

TEST(LimitedMemoryTest, AnErrorOfTheFunctionIsTheResult) {
  for (const int good : {0, 1, 4}) {
    int evaluations = 0;
    SmoothProblem problem;
    problem.evaluate = [&](const Eigen::VectorXd& x,
                           Eigen::VectorXd* gradient) -> StatusOr<double> {
      if (evaluations++ == good) return DataLoss("a file is gone");
      return Valley(x, gradient);
    };
    problem.is_done = [] { return false; };
    Eigen::VectorXd x = Eigen::Vector2d(-1.2, 1);
    EXPECT_EQ(MinimiseWithLimitedMemory(problem, &x).status().code(), StatusCode::kDataLoss);
    EXPECT_EQ(evaluations, good + 1);
  }
}

struct SmallModel {
  const char *formula, *family, *weights;
};
constexpr SmallModel kSmallModels[] = {
    {"level ~ x + z + f + C(g)", "gaussian", "w"},
    {"level ~ 0 + f + x", "gaussian", ""},
    {"y ~ x * f + z + C(g)", "binomial", ""},
    {"cbind(hits, misses) ~ x + f + z", "binomial", "w"},
    {"count ~ x + f + C(g) + offset(log(trials))", "poisson", ""},
    {"count ~ x + z + f", "poisson", "w"}};

GlmOptions OptionsOf(const SmallModel& model, const GlmPenalty& penalty, GlmMethod method) {
  GlmOptions options;
  options.family = ParseGlmFamily(model.family).value();
  options.weights = model.weights;
  options.penalty = penalty;
  options.method = method;
  return options;
}

TEST(QuasiNewtonTest, FitsAreThoseOfNewton) {
  const std::vector<std::string> files = {SamplePath("glm/models.csv")};
  const GlmPenalty penalties[] = {{},
                                  {.ridge = 3},
                                  {.ridge = 0.5, .standardised = StandardisedColumns::kNumeric},
                                  {.ridge = 2, .standardised = StandardisedColumns::kNone},
                                  {.lambda = 0.01},
                                  {.lambda = 0.02, .alpha = 0.4},
                                  {.lambda = 0.03, .alpha = 0},
                                  {.lambda = 0.01, .standardised = StandardisedColumns::kNumeric}};
  for (const SmallModel& model : kSmallModels) {
    for (const GlmPenalty& penalty : penalties) {
      SCOPED_TRACE(StrCat(model.formula, " ", model.family, " ridge ", penalty.ridge, " lambda ",
                          penalty.lambda, " alpha ", penalty.alpha));
      const auto exact =
          FitGlm(model.formula, files, OptionsOf(model, penalty, GlmMethod::kNewton));
      const auto fit = FitGlm(model.formula, files, OptionsOf(model, penalty, GlmMethod::kLbfgs));
      ASSERT_TRUE(exact.ok()) << exact.status();
      ASSERT_TRUE(fit.ok()) << fit.status();
      EXPECT_TRUE(fit->converged);
      EXPECT_EQ(fit->method, penalty.lambda > 0 && penalty.alpha > 0 ? "lbfgs (OWL-QN)" : "lbfgs");
      EXPECT_LE(fit->iterations.back().gradient_norm, 1e-7);
      EXPECT_LT(fit->iterations.back().pass, 150);
      EXPECT_NEAR(fit->residual_deviance / exact->residual_deviance, 1, 1e-6);
      EXPECT_NEAR(fit->null_deviance / exact->null_deviance, 1, 1e-12);
      if (penalty.is_none()) {
        EXPECT_GE(fit->residual_deviance / exact->residual_deviance, 1 - 1e-12);
        EXPECT_LE(fit->residual_deviance / exact->residual_deviance, 1 + 1e-9);
        EXPECT_NEAR(fit->aic / exact->aic, 1, 1e-9);
      }
      ASSERT_EQ(fit->coefficients.size(), exact->coefficients.size());
      for (size_t i = 0; i < fit->coefficients.size(); ++i) {
        const GlmCoefficient &own = fit->coefficients[i], &wanted = exact->coefficients[i];
        EXPECT_EQ(own.status, wanted.status) << own.name;
        EXPECT_NEAR(own.estimate, wanted.estimate, 2e-5 * std::max(1.0, std::abs(wanted.estimate)))
            << own.name;
        if (!std::isnan(wanted.standardised)) {
          EXPECT_NEAR(own.standardised, wanted.standardised, 1e-5) << own.name;
        }
        EXPECT_TRUE(std::isnan(own.standard_error));
      }
    }
  }
}

TEST(QuasiNewtonTest, PathsAreThoseOfNewton) {
  const std::vector<std::string> files = {SamplePath("glm/models.csv")};
  for (const SmallModel& model : kSmallModels) {
    SCOPED_TRACE(model.formula);
    const GlmPenalty penalty = {.lambda = 0.011, .alpha = 0.8, .path = 25};
    const auto exact = FitGlm(model.formula, files, OptionsOf(model, penalty, GlmMethod::kNewton));
    const auto fit = FitGlm(model.formula, files, OptionsOf(model, penalty, GlmMethod::kLbfgs));
    ASSERT_TRUE(exact.ok()) << exact.status();
    ASSERT_TRUE(fit.ok()) << fit.status();
    ASSERT_EQ(fit->path.size(), exact->path.size());
    for (size_t k = 0; k < fit->path.size(); ++k) {
      EXPECT_NEAR(fit->path[k].lambda / exact->path[k].lambda, 1, 1e-9);
      EXPECT_NEAR(fit->path[k].deviance_ratio, exact->path[k].deviance_ratio, 1e-7);
      EXPECT_LE(fit->path[k].residual, 1e-7);
      for (size_t j = 0; j < fit->path[k].standardised.size(); ++j) {
        EXPECT_NEAR(fit->path[k].standardised[j], exact->path[k].standardised[j], 2e-5) << j;
      }
    }
    EXPECT_EQ(fit->lambda, 0.011);
  }
}

TEST(QuasiNewtonTest, SumsOfColumnsShareAndEmptyColumnsHaveNoEstimate) {
  const std::vector<std::string> files = {SamplePath("glm/models.csv")};
  GlmOptions options = {.family = GlmFamily::kBinomial};
  const auto exact = FitGlm("y ~ x + z + km", files, options);
  options.method = GlmMethod::kLbfgs;
  const auto fit = FitGlm("y ~ x + z + km", files, options);
  ASSERT_TRUE(exact.ok() && fit.ok());
  EXPECT_NEAR(fit->residual_deviance / exact->residual_deviance, 1, 1e-9);
  // km is 1.609344 z: the step to the minimum leaves a share to each that is the same in the units
  // of both.
  EXPECT_NEAR(fit->coefficients[2].standardised, fit->coefficients[3].standardised, 1e-6);
  EXPECT_NEAR(fit->coefficients[2].standardised * 2, exact->coefficients[2].standardised, 1e-5);
  // No row has both r and u.
  std::string text = "a,b,y\n";
  for (int i = 0; i < 90; ++i) {
    const int a = i % 3, b = (i / 3) % (a == 2 ? 2 : 3);
    StrAppend(&text,
              a == 0   ? "p"
              : a == 1 ? "q"
                       : "r",
              ",",
              b == 0   ? "s"
              : b == 1 ? "t"
                       : "u",
              ",", (i * 7) % 5 < 2, "\n");
  }
  const TemporaryFolder folder;
  const auto crossed = FitGlm("y ~ a * b", {folder.Write("t.csv", text)}, options);
  ASSERT_TRUE(crossed.ok()) << crossed.status();
  EXPECT_EQ(crossed->coefficients.back().name, "ar:bu");
  EXPECT_EQ(crossed->coefficients.back().status, CoefficientStatus::kAliased);
  EXPECT_EQ(crossed->NumEstimated(), 8);
  EXPECT_EQ(crossed->residual_df, 82);
}

TEST(QuasiNewtonTest, TheReportSaysWhatIsMissingAndWhy) {
  const std::vector<std::string> files = {SamplePath("glm/models.csv")};
  GlmOptions options = {.family = GlmFamily::kBinomial, .method = GlmMethod::kLbfgs};
  const auto fit = FitGlm("y ~ x + f", files, options);
  ASSERT_TRUE(fit.ok()) << fit.status();
  const std::string text = FormatGlm(*fit);
  EXPECT_THAT(text, HasSubstr("no standard errors, tests and intervals: they want the products"));
  EXPECT_THAT(text, HasSubstr("method   lbfgs, 4 coefficients, "));
  EXPECT_THAT(text, HasSubstr(", residual "));
  EXPECT_TRUE(fit->covariance.empty());
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteGlm(*fit, folder.path()).ok());
  EXPECT_THAT(ModelJson(*fit).value(), HasSubstr("\"method\": \"lbfgs\""));
  const auto model = LoadGlm(folder.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(LoadCovariance(*model, folder.path()).status().message(),
              HasSubstr("has no standard errors, as under a penalty and by lbfgs"));
  options.robust = true;
  EXPECT_THAT(FitGlm("y ~ x + f", files, options).status().message(),
              HasSubstr("robust standard errors want --method newton"));
}

/// Two factors of so many levels, each in about four rows, and a number.
std::string WideTable(int levels, int rows) {
  std::string text = "y,x,a,b\n";
  for (int i = 0; i < rows; ++i) {
    const int a = i % levels, b = (i * 7 + i / levels) % (levels - 50);
    const double x = ((i * 31) % 101) / 50.0 - 1;
    const int y = ((i * 37) % 97) / 97.0 < 1 / (1 + std::exp(-x - (a % 5) * 0.3 + (b % 3) * 0.4));
    StrAppend(&text, y, ",", x, ",k", a, ",m", b, "\n");
  }
  return text;
}

TEST(QuasiNewtonTest, WideModelsChooseIt) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("wide.csv", WideTable(5200, 22000));
  GlmOptions options = {.family = GlmFamily::kBinomial};
  options.penalty = {.ridge = 1, .standardised = StandardisedColumns::kNumeric};
  const auto fit = FitGlm("y ~ x + a + b", {path}, options);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->method, "lbfgs");
  EXPECT_TRUE(fit->converged);
  EXPECT_EQ(fit->NumEstimated(), 10350);
  EXPECT_THAT(FormatGlm(*fit), HasSubstr("lbfgs, since 5,151 columns beside the largest factor are "
                                         "more than 5,000; 10,350"));
  EXPECT_LT(fit->iterations.back().pass, 60);
  const auto again = FitGlm("y ~ x + a + b", {path}, options);
  ASSERT_TRUE(again.ok()) << again.status();
  for (size_t i = 0; i < fit->coefficients.size(); ++i) {
    EXPECT_EQ(fit->coefficients[i].estimate, again->coefficients[i].estimate);
  }
  options.penalty = {.lambda = 0.002};
  const auto lasso = FitGlm("y ~ x + a + b", {path}, options);
  ASSERT_TRUE(lasso.ok()) << lasso.status();
  EXPECT_EQ(lasso->method, "lbfgs (OWL-QN)");
  EXPECT_TRUE(lasso->converged);
  EXPECT_GT(lasso->NumEstimated(), 1);
}

TEST(QuasiNewtonTest, NewtonOnTooManyColumnsIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("wide.csv", WideTable(40000, 40000));
  GlmOptions options = {.family = GlmFamily::kBinomial, .method = GlmMethod::kNewton};
  options.separated = SeparatedLevels::kKeep;
  const auto fit = FitGlm("y ~ x + a + b", {path}, options);
  EXPECT_EQ(fit.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(fit.status().message(), HasSubstr("--method lbfgs does without them"));
}

}  // namespace
}  // namespace tenon
