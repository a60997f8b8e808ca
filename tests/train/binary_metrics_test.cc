// SPDX-License-Identifier: Apache-2.0
#include "train/glm/result/binary_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/base/strings.h"

namespace tenon {
namespace {

struct Prediction {
  double logit;
  bool is_positive;
  double weight;
};

/// Predictions that are right up to a line: logit(P) = intercept + slope logit.
std::vector<Prediction> RandomPredictions(unsigned seed, double mean, double spread,
                                          double intercept, double slope, bool weights) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, spread);
  std::uniform_real_distribution<double> uniform;
  std::vector<Prediction> predictions;
  for (int i = 0; i < 20000; ++i) {
    const double logit = normal(random);
    const double p = 1 / (1 + std::exp(-intercept - slope * logit));
    const bool is_positive = uniform(random) < p;
    predictions.push_back({logit, is_positive, weights ? 0.5 + uniform(random) : 1.0});
  }
  return predictions;
}

LogitHistogram HistogramOf(const std::vector<Prediction>& predictions) {
  LogitHistogram histogram;
  for (const Prediction& p : predictions) histogram.Add(p.logit, p.is_positive, p.weight);
  return histogram;
}

/// The share of pairs of a positive and a negative in the right order, ties half.
double AucByRank(std::vector<Prediction> predictions) {
  std::sort(predictions.begin(), predictions.end(),
            [](const Prediction& a, const Prediction& b) { return a.logit < b.logit; });
  double below = 0, pairs = 0, positives = 0;
  for (size_t begin = 0, end = 0; begin < predictions.size(); begin = end) {
    double tied_positives = 0, tied_negatives = 0;
    for (; end < predictions.size() && predictions[end].logit == predictions[begin].logit; ++end) {
      (predictions[end].is_positive ? tied_positives : tied_negatives) += predictions[end].weight;
    }
    pairs += tied_positives * (below + tied_negatives / 2);
    below += tied_negatives;
    positives += tied_positives;
  }
  return pairs / (positives * below);
}

TEST(BinaryMetricsTest, ScoresAreThoseOfEachPredictionWithinABin) {
  unsigned seed = 0;
  for (const double spread : {0.0, 0.0005, 0.01, 1.0, 5.0, 30.0}) {
    for (const double mean : {-6.0, 0.3}) {
      for (const bool weights : {false, true}) {
        SCOPED_TRACE(StrCat("spread ", spread, " mean ", mean));
        const std::vector<Prediction> predictions =
            RandomPredictions(++seed, mean, spread, 0, 1, weights);
        const BinaryScores scores = ScoresOf(HistogramOf(predictions));
        // Half of what order within a bin can change, when most pairs are within one.
        const double auc_error = spread >= 1 ? 1e-4 : spread >= 0.01 ? 5e-4 : 1e-2;
        double all = 0, right = 0, said = 0, hits = 0, positives = 0, loss = 0, square = 0;
        for (const Prediction& p : predictions) {
          const bool says = p.logit >= 0;
          const double probability = 1 / (1 + std::exp(-p.logit));
          const double error = p.is_positive ? 1 - probability : probability;
          all += p.weight;
          right += p.weight * (says == p.is_positive);
          said += p.weight * says;
          hits += p.weight * (says && p.is_positive);
          positives += p.weight * p.is_positive;
          loss += p.weight * std::log1p(std::exp(p.is_positive ? -p.logit : p.logit));
          square += p.weight * error * error;
        }
        EXPECT_NEAR(scores.positives, positives, 1e-9 * all);
        EXPECT_NEAR(scores.negatives, all - positives, 1e-9 * all);
        EXPECT_NEAR(scores.auc, AucByRank(predictions), auc_error);
        EXPECT_NEAR(scores.accuracy, right / all, 1e-12);
        if (said > 0) EXPECT_NEAR(scores.precision, hits / said, 1e-12);
        if (said == 0) EXPECT_TRUE(std::isnan(scores.precision));
        EXPECT_NEAR(scores.recall, hits / positives, 1e-12);
        EXPECT_NEAR(scores.log_loss, loss / all, 1e-3 * (loss / all));
        EXPECT_NEAR(scores.brier, square / all, 1e-3 * (square / all));
      }
    }
  }
}

TEST(BinaryMetricsTest, TheCalibrationLineIsFound) {
  const BinaryScores right = ScoresOf(HistogramOf(RandomPredictions(1, -1, 1.5, 0, 1, false)));
  EXPECT_NEAR(right.calibration_intercept, 0, 0.06);
  EXPECT_NEAR(right.calibration_slope, 1, 0.06);
  const BinaryScores wrong = ScoresOf(HistogramOf(RandomPredictions(2, -1, 1.5, 0.7, 0.4, false)));
  EXPECT_NEAR(wrong.calibration_intercept, 0.7, 0.06);
  EXPECT_NEAR(wrong.calibration_slope, 0.4, 0.06);
  // The second fit of calibrated predictions changes nothing.
  std::vector<Prediction> again = RandomPredictions(2, -1, 1.5, 0.7, 0.4, false);
  for (Prediction& p : again) {
    p.logit = wrong.calibration_intercept + wrong.calibration_slope * p.logit;
  }
  EXPECT_NEAR(ScoresOf(HistogramOf(again)).calibration_intercept, 0, 1e-3);
  EXPECT_NEAR(ScoresOf(HistogramOf(again)).calibration_slope, 1, 1e-3);
}

TEST(BinaryMetricsTest, WhatHasNoMeaningIsNoNumber) {
  LogitHistogram none;
  EXPECT_TRUE(std::isnan(ScoresOf(none).auc));
  EXPECT_TRUE(std::isnan(ScoresOf(none).log_loss));
  EXPECT_TRUE(RocCurve(none).empty());
  EXPECT_TRUE(CalibrationBins(none).empty());
  LogitHistogram separated;
  separated.Add(-3, false);
  separated.Add(-1, false);
  separated.Add(2, true);
  EXPECT_EQ(ScoresOf(separated).auc, 1);
  EXPECT_TRUE(std::isnan(ScoresOf(separated).calibration_slope));
  LogitHistogram one_class;
  one_class.Add(1, true);
  EXPECT_TRUE(std::isnan(ScoresOf(one_class).auc));
  EXPECT_EQ(ScoresOf(one_class).accuracy, 1);
}

TEST(BinaryMetricsTest, EveryLogitHasABin) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(LogitHistogram::BinOf(-infinite), 0);
  EXPECT_EQ(LogitHistogram::BinOf(std::nan("")), 0);
  EXPECT_EQ(LogitHistogram::BinOf(-1e300), 0);
  EXPECT_EQ(LogitHistogram::BinOf(infinite), LogitHistogram::kBins - 1);
  EXPECT_EQ(LogitHistogram::BinOf(0), LogitHistogram::kBins / 2);
  EXPECT_EQ(LogitHistogram::BinOf(-1e-9), LogitHistogram::kBins / 2 - 1);
  for (const int64_t bin : {0, 1, 30000, 65535}) {
    EXPECT_EQ(LogitHistogram::BinOf(LogitHistogram::LogitOf(bin)), bin);
  }
}

TEST(BinaryMetricsTest, PartsAddUp) {
  const std::vector<Prediction> all = RandomPredictions(3, 0, 2, 0, 1, true);
  LogitHistogram sum = HistogramOf({all.begin(), all.begin() + 7000});
  sum.Add(HistogramOf({all.begin() + 7000, all.end()}));
  EXPECT_NEAR(ScoresOf(sum).auc, ScoresOf(HistogramOf(all)).auc, 1e-12);
}

TEST(BinaryMetricsTest, TheRocCurveGoesFromCornerToCornerAndHasTheArea) {
  for (const double spread : {0.01, 1.0, 8.0}) {
    const LogitHistogram histogram = HistogramOf(RandomPredictions(4, -1, spread, 0, 1, false));
    const std::vector<RocPoint> curve = RocCurve(histogram, 400);
    ASSERT_GE(curve.size(), 2u);
    EXPECT_LE(curve.size(), 402u);
    EXPECT_EQ(curve.front().false_positive_rate, 0);
    EXPECT_EQ(curve.front().true_positive_rate, 0);
    EXPECT_EQ(curve.back().false_positive_rate, 1);
    EXPECT_EQ(curve.back().true_positive_rate, 1);
    double area = 0;
    for (size_t i = 1; i < curve.size(); ++i) {
      const RocPoint &a = curve[i - 1], &b = curve[i];
      EXPECT_LE(a.false_positive_rate, b.false_positive_rate);
      EXPECT_LE(a.true_positive_rate, b.true_positive_rate);
      EXPECT_GT(a.logit, b.logit);
      area += (b.false_positive_rate - a.false_positive_rate) *
              (a.true_positive_rate + b.true_positive_rate) / 2;
    }
    EXPECT_NEAR(area, ScoresOf(histogram).auc, 1e-4);
  }
}

TEST(BinaryMetricsTest, CalibrationGroupsAreOfEqualWeightAndHoldAll) {
  const std::vector<Prediction> predictions = RandomPredictions(5, -1, 1, 0, 1, false);
  const std::vector<CalibrationBin> groups = CalibrationBins(HistogramOf(predictions), 10);
  ASSERT_EQ(groups.size(), 10u);
  double all = 0;
  int64_t outside = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    EXPECT_NEAR(groups[i].weight, 2000, 30);
    EXPECT_LE(groups[i].lower, groups[i].observed);
    EXPECT_GE(groups[i].upper, groups[i].observed);
    if (i > 0) EXPECT_GT(groups[i].predicted, groups[i - 1].predicted);
    outside += groups[i].predicted < groups[i].lower || groups[i].predicted > groups[i].upper;
    all += groups[i].weight;
  }
  EXPECT_EQ(all, 20000);
  EXPECT_LE(outside, 2);
  // A value that most predictions share makes one group, and the groups behind it stay large.
  LogitHistogram heavy;
  for (int i = 0; i < 600; ++i) heavy.Add(0, i % 2 == 0);
  for (int i = 0; i < 400; ++i) heavy.Add(1 + i * 0.01, true);
  const std::vector<CalibrationBin> few = CalibrationBins(heavy, 10);
  ASSERT_EQ(few.size(), 5u);
  EXPECT_EQ(few[0].weight, 600);
  EXPECT_EQ(few[1].weight, 100);
  EXPECT_EQ(few[4].observed, 1);
  EXPECT_EQ(few[4].upper, 1);
}

}  // namespace
}  // namespace tenon
