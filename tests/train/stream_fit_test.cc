// SPDX-License-Identifier: Apache-2.0
#include "train/glm/rows/stream_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/strings.h"
#include "data/batch/random_sequence.h"
#include "tests/data/sample_files.h"
#include "tests/train/stream_rows.h"
#include "train/glm/fit_glm.h"
#include "train/glm/report/print_glm.h"
#include "train/glm/report/write_glm.h"

namespace tenon {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

GlmOptions StreamOptions(GlmFamily family, int64_t lanes = 1) {
  GlmOptions options;
  options.family = family;
  options.stream.emplace();
  options.stream->lanes = lanes;
  return options;
}

/// Follow the proximally regularised leader, a row at a time (McMahan et al. 2013, algorithm 1).
class Leader {
 public:
  Leader(size_t size, double rate, double l1, double l2, double squares)
      : rate_(rate), l1_(l1), l2_(l2), z_(size), n_(size, squares), w_(size) {}

  void Step(const std::vector<double>& x, double start, double y) {
    double predictor = start;
    for (size_t j = 0; j < x.size(); ++j) predictor += w_[j] * x[j];
    const double error = 1 / (1 + std::exp(-predictor)) - y;
    for (size_t j = 0; j < x.size(); ++j) {
      if (x[j] == 0) continue;
      const double g = error * x[j];
      const double sigma = (std::sqrt(n_[j] + g * g) - std::sqrt(n_[j])) / rate_;
      z_[j] += g - sigma * w_[j];
      n_[j] += g * g;
      const double l1 = j == 0 ? 0 : l1_, l2 = j == 0 ? 0 : l2_;
      w_[j] = std::abs(z_[j]) <= l1
                  ? 0
                  : -(z_[j] - std::copysign(l1, z_[j])) / (std::sqrt(n_[j]) / rate_ + l2);
    }
  }
  const std::vector<double>& weights() const { return w_; }

 private:
  const double rate_, l1_, l2_;
  std::vector<double> z_, n_, w_;
};

TEST(StreamFitTest, BatchesOfOneRowAreTheAlgorithmOfThePaper) {
  RandomSequence random(11);
  const TemporaryFolder folder;
  const int64_t count = 2000;
  std::vector<std::vector<double>> rows;
  std::vector<double> responses, values;
  std::string text = "y,x,f\n";
  for (int64_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(random.Below(400)) / 100;
    const auto f = static_cast<int64_t>(random.Below(3));
    const double y = static_cast<double>(random.Below(10)) < 2 + x + static_cast<double>(f) ? 1 : 0;
    StrAppend(&text, y, ",", x, ",f", f, "\n");
    rows.push_back({1, x, f == 1 ? 1.0 : 0.0, f == 2 ? 1.0 : 0.0});
    responses.push_back(y);
    values.push_back(x);
  }
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double variance = 0;
  for (const double x : values) variance += (x - mean) * (x - mean) / count;
  const double deviation = std::sqrt(variance);
  const double y_mean = std::accumulate(responses.begin(), responses.end(), 0.0) / count;
  const double start = std::log(y_mean / (1 - y_mean));
  const std::string path = folder.Write("t.csv", text);
  for (const double lambda : {0.0, 0.002}) {
    for (const int64_t epochs : {1, 2}) {
      GlmOptions options = StreamOptions(GlmFamily::kBinomial);
      options.stream->batch_rows = 1;
      options.stream->seed = -1;
      options.stream->epochs = epochs;
      options.penalty.lambda = lambda;
      options.penalty.alpha = 0.5;
      options.penalty.standardised = StandardisedColumns::kNumeric;
      const auto fit = FitGlm("y ~ x + f", {path}, options);
      ASSERT_TRUE(fit.ok()) << fit.status();
      const double factor = static_cast<double>(epochs * count) * lambda * 0.5;
      Leader leader(4, 0.1, factor, factor, 1);
      for (int64_t e = 0; e < epochs; ++e) {
        for (int64_t i = 0; i < count; ++i) {
          std::vector<double> row = rows[i];
          row[1] = (row[1] - mean) / deviation;
          leader.Step(row, start, responses[i]);
        }
      }
      const std::vector<double>& w = leader.weights();
      const std::vector<double> wanted = {start + w[0] - w[1] / deviation * mean, w[1] / deviation,
                                          0, w[2], w[3]};
      ASSERT_EQ(fit->coefficients.size(), wanted.size());
      for (size_t j = 0; j < wanted.size(); ++j) {
        EXPECT_NEAR(fit->coefficients[j].estimate, wanted[j], 1e-9) << j;
      }
    }
  }
}

TEST(StreamFitTest, OneEpochComesNearTheMaximum) {
  RandomSequence random(13);
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", StreamRowsOf(40000, &random));
  const auto exact = FitGlm("y ~ x + f + g", {path}, {.family = GlmFamily::kBinomial});
  ASSERT_TRUE(exact.ok()) << exact.status();
  const double gained = exact->null_deviance - exact->residual_deviance;
  std::vector<double> distances;
  for (const int64_t lanes : {1, 3}) {
    for (const int64_t memory : {0, 100000}) {
      GlmOptions options = StreamOptions(GlmFamily::kBinomial, lanes);
      options.memory = memory;
      options.stream->batch_rows = 64;
      const auto fit = FitGlm("y ~ x + f + g", {path}, options);
      ASSERT_TRUE(fit.ok()) << fit.status();
      EXPECT_EQ(fit->stream->rows_read, 40000);
      EXPECT_EQ(fit->stream->rows_missed, 0);
      EXPECT_NEAR(fit->null_deviance, exact->null_deviance, 1e-6);
      EXPECT_LT(fit->residual_deviance, exact->residual_deviance + 0.1 * gained);
      distances.push_back(fit->residual_deviance - exact->residual_deviance);
    }
  }
  GlmOptions options = StreamOptions(GlmFamily::kBinomial);
  options.stream->batch_rows = 64;
  options.stream->epochs = 10;
  const auto longer = FitGlm("y ~ x + f + g", {path}, options);
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ(longer->iterations.size(), 10);
  EXPECT_LT(longer->residual_deviance - exact->residual_deviance, 0.5 * distances[0] + 1);
}

TEST(StreamFitTest, OneLaneGivesTheSameBitsForTheSameSeed) {
  RandomSequence random(13);
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", StreamRowsOf(5000, &random));
  std::vector<std::string> texts;
  for (const int64_t seed : {1, 1, 2}) {
    GlmOptions options = StreamOptions(GlmFamily::kBinomial);
    options.stream->seed = seed;
    texts.push_back(CoefficientsCsv(FitGlm("y ~ x*f + g", {path}, options).value()));
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
}

TEST(StreamFitTest, ALassoMakesZerosAndTheInterceptIsFreeOfIt) {
  RandomSequence random(17);
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", StreamRowsOf(20000, &random));
  GlmOptions options = StreamOptions(GlmFamily::kBinomial);
  options.penalty.lambda = 0.02;
  options.penalty.standardised = StandardisedColumns::kNumeric;
  const auto fit = FitGlm("y ~ x + f + g", {path}, options);
  ASSERT_TRUE(fit.ok()) << fit.status();
  int64_t zeros = 0;
  for (const GlmCoefficient& c : fit->coefficients) {
    zeros += c.status == CoefficientStatus::kZero ? 1 : 0;
  }
  EXPECT_GE(zeros, 45);  // of 49 levels, each of which has 400 rows
  EXPECT_NE(fit->coefficients[0].estimate, 0);
  EXPECT_EQ(fit->coefficients[1].status, CoefficientStatus::kOk);  // x
  EXPECT_THAT(fit->objective, HasSubstr("20000 x 0.02 x (1 x sum of |b|)"));
  // The same objective as an exact fit has.
  GlmOptions exact_options = options;
  exact_options.stream.reset();
  const auto exact = FitGlm("y ~ x + f + g", {path}, exact_options);
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_NEAR(fit->coefficients[1].estimate, exact->coefficients[1].estimate, 0.05);
}

TEST(StreamFitTest, OtherFamiliesComeNearTheirMaximumInAnyUnits) {
  RandomSequence random(19);
  const TemporaryFolder folder;
  std::string text = "y,n,x,z,f,w\n";
  for (int i = 0; i < 30000; ++i) {
    const double x = static_cast<double>(random.Below(1000)),
                 z = static_cast<double>(random.Below(50));
    const auto f = static_cast<double>(random.Below(4));
    double noise = -6;
    for (int k = 0; k < 12; ++k) noise += static_cast<double>(random.Below(1000)) / 1000;
    const double exposure = 1 + static_cast<double>(random.Below(5));
    const double rate = exposure * std::exp(0.5 + 0.001 * x - 0.2 * f);
    StrAppend(&text, 5e6 + 4e3 * x - 7e4 * z + 1e6 * f + 1e6 * noise, ",",
              std::max(0.0, std::round(rate + noise * std::sqrt(rate))), ",", x, ",", z, ",f", f,
              ",", exposure, "\n");
  }
  const std::string path = folder.Write("t.csv", text);
  struct Case {
    const char *formula, *weights;
    GlmFamily family;
  };
  for (const Case& c : {Case{"y ~ x + z + f", "", GlmFamily::kGaussian},
                        Case{"y ~ x*f + z", "w", GlmFamily::kGaussian},
                        Case{"n ~ x + z + f + offset(log(w))", "", GlmFamily::kPoisson},
                        Case{"n ~ x*f", "w", GlmFamily::kPoisson}}) {
    SCOPED_TRACE(c.formula);
    GlmOptions options = {.family = c.family, .weights = c.weights};
    const auto exact = FitGlm(c.formula, {path}, options);
    ASSERT_TRUE(exact.ok()) << exact.status();
    options.stream.emplace();
    options.stream->epochs = 3;
    options.stream->lanes = 1;
    const auto fit = FitGlm(c.formula, {path}, options);
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_NEAR(fit->null_deviance, exact->null_deviance, 1e-8 * exact->null_deviance);
    EXPECT_LT(fit->residual_deviance,
              exact->residual_deviance + 0.05 * (exact->null_deviance - exact->residual_deviance));
  }
}

TEST(StreamFitTest, TheResultSaysThatItHasNoInference) {
  RandomSequence random(23);
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", StreamRowsOf(3000, &random));
  GlmOptions options = StreamOptions(GlmFamily::kBinomial);
  options.evaluation = {path};
  const auto fit = FitGlm("y ~ x + f", {path}, options);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_FALSE(fit->converged);
  EXPECT_EQ(fit->covariance.size(), 0);
  for (const GlmCoefficient& c : fit->coefficients) EXPECT_TRUE(std::isnan(c.standard_error));
  EXPECT_TRUE(std::isnan(fit->aic));
  ASSERT_EQ(fit->metrics.size(), 2);
  EXPECT_EQ(fit->metrics[0].log_loss, fit->metrics[1].log_loss);
  EXPECT_NEAR(fit->metrics[0].log_loss, fit->residual_deviance / 2 / 3000, 1e-9);
  const std::string text = FormatGlm(*fit);
  EXPECT_THAT(text, HasSubstr("stream   not converged, no inference:"));
  EXPECT_THAT(text, HasSubstr("ftrl, 4 coefficients"));
  const std::string json = MetricsJson(*fit);
  EXPECT_THAT(json, HasSubstr("\"method\": \"ftrl\""));
  EXPECT_THAT(json, HasSubstr("\"rows_read\": 3000"));
  const auto written = WriteGlm(*fit, folder / "model");
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_THAT(*written, Contains("model.json"));
  EXPECT_THAT(*written, Not(Contains("covariance.npz")));
}

TEST(StreamFitTest, WhatDoesNotGoWithAStreamIsAnError) {
  RandomSequence random(29);
  const TemporaryFolder folder;
  const std::string path = folder.Write("t.csv", StreamRowsOf(100, &random));
  const auto error_of = [&](const std::function<void(GlmOptions*)>& change) {
    GlmOptions options = StreamOptions(GlmFamily::kBinomial);
    change(&options);
    return std::string(Message(FitGlm("y ~ x", {path}, options).status()));
  };
  EXPECT_THAT(error_of([](GlmOptions* o) { o->robust = true; }), HasSubstr("robust"));
  EXPECT_THAT(error_of([](GlmOptions* o) { o->penalty.path = 10; }), HasSubstr("no path"));
  EXPECT_THAT(error_of([](GlmOptions* o) { o->penalty.ridge = 1; }),
              HasSubstr("--standardize numeric"));
  EXPECT_THAT(error_of([](GlmOptions* o) { o->start.values = {1}; }), HasSubstr("begins at"));
  EXPECT_THAT(error_of([](GlmOptions* o) { o->stream->epochs = 0; }), HasSubstr("one epoch"));
  EXPECT_THAT(error_of([](GlmOptions* o) { o->stream->batch_rows = 0; }), HasSubstr("one row"));
  EXPECT_THAT(error_of([](GlmOptions* o) { o->stream->learning_rate = 0; }),
              HasSubstr("above 0; found 1, 512, 0"));
}

}  // namespace
}  // namespace tenon
