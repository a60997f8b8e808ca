// SPDX-License-Identifier: Apache-2.0
#include "train/glm/result/binary_metrics.h"

#include <limits>
#include <numeric>

namespace tenon {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double SumOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double SigmoidOf(double logit) { return 1 / (1 + std::exp(-logit)); }

/// log(1 + exp(x)), which neither overflows nor rounds to nothing.
double LogOnePlusExp(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

/// A bin with something in it.
struct FilledBin {
  double logit, positives, negatives;
};

std::vector<FilledBin> FilledBinsOf(const LogitHistogram& histogram) {
  std::vector<FilledBin> bins;
  for (int64_t i = 0; i < LogitHistogram::kBins; ++i) {
    const double positives = histogram.positives[static_cast<size_t>(i)];
    const double negatives = histogram.negatives[static_cast<size_t>(i)];
    if (positives + negatives > 0) {
      bins.push_back({LogitHistogram::LogitOf(i), positives, negatives});
    }
  }
  return bins;
}

/// The maximum likelihood of logit(P(positive)) = a + b logit, by Newton's method with half steps
/// where the likelihood does not grow. NaN where the labels are separated, so that there is none.
void FitCalibration(const std::vector<FilledBin>& bins, BinaryScores* scores) {
  constexpr int kMostSteps = 50, kMostHalves = 30;
  constexpr double kTolerance = 1e-10;
  const auto loss = [&bins](double a, double b) {
    double sum = 0;
    for (const FilledBin& bin : bins) {
      const double eta = a + b * bin.logit;
      sum += bin.positives * LogOnePlusExp(-eta) + bin.negatives * LogOnePlusExp(eta);
    }
    return sum;
  };
  double a = 0, b = 1, before = loss(a, b);
  for (int step = 0; step < kMostSteps; ++step) {
    double g0 = 0, g1 = 0, h00 = 0, h01 = 0, h11 = 0;
    for (const FilledBin& bin : bins) {
      const double p = SigmoidOf(a + b * bin.logit);
      const double weight = bin.positives + bin.negatives;
      const double residual = bin.positives - weight * p, w = weight * p * (1 - p);
      g0 += residual;
      g1 += residual * bin.logit;
      h00 += w;
      h01 += w * bin.logit;
      h11 += w * bin.logit * bin.logit;
    }
    const double determinant = h00 * h11 - h01 * h01;
    if (!(determinant > 1e-12 * h00 * h11)) break;
    double da = (h11 * g0 - h01 * g1) / determinant, db = (h00 * g1 - h01 * g0) / determinant;
    const bool is_last =
        std::abs(da) + std::abs(db) <= kTolerance * (1 + std::abs(a) + std::abs(b));
    double after = loss(a + da, b + db);
    // Close to the maximum the change is less than the sum's rounding.
    const double most = before * (1 + 1e-12);
    for (int half = 0; half < kMostHalves && !(after <= most); ++half) {
      da /= 2;
      db /= 2;
      after = loss(a + da, b + db);
    }
    a += da;
    b += db;
    before = after;
    if (is_last) {
      scores->calibration_intercept = a;
      scores->calibration_slope = b;
      return;
    }
  }
  scores->calibration_intercept = scores->calibration_slope = kNone;
}

}  // namespace

void LogitHistogram::Add(const LogitHistogram& other) {
  for (size_t i = 0; i < positives.size(); ++i) {
    positives[i] += other.positives[i];
    negatives[i] += other.negatives[i];
  }
}

BinaryScores ScoresOf(const LogitHistogram& histogram) {
  BinaryScores scores;
  const std::vector<FilledBin> bins = FilledBinsOf(histogram);
  scores.positives = SumOf(histogram.positives);
  scores.negatives = SumOf(histogram.negatives);
  const double all = scores.positives + scores.negatives;
  double negatives_below = 0, pairs = 0, true_positives = 0, false_positives = 0;
  double loss = 0, square = 0;
  for (const FilledBin& bin : bins) {
    // Within a bin a pair is a tie, which counts half.
    pairs += bin.positives * (negatives_below + bin.negatives / 2);
    negatives_below += bin.negatives;
    if (bin.logit > 0) {
      true_positives += bin.positives;
      false_positives += bin.negatives;
    }
    const double p = SigmoidOf(bin.logit), q = SigmoidOf(-bin.logit);
    loss += bin.positives * LogOnePlusExp(-bin.logit) + bin.negatives * LogOnePlusExp(bin.logit);
    square += bin.positives * q * q + bin.negatives * p * p;
  }
  const auto ratio = [](double part, double whole) { return whole > 0 ? part / whole : kNone; };
  scores.auc = ratio(pairs, scores.positives * scores.negatives);
  scores.accuracy = ratio(true_positives + scores.negatives - false_positives, all);
  scores.precision = ratio(true_positives, true_positives + false_positives);
  scores.recall = ratio(true_positives, scores.positives);
  scores.log_loss = ratio(loss, all);
  scores.brier = ratio(square, all);
  FitCalibration(bins, &scores);
  return scores;
}

std::vector<RocPoint> RocCurve(const LogitHistogram& histogram, int64_t most) {
  const double positives = SumOf(histogram.positives), negatives = SumOf(histogram.negatives);
  if (!(positives > 0 && negatives > 0)) return {};
  std::vector<RocPoint> curve = {{0, 0, LogitHistogram::kLimit}};
  const double step = 4.0 / static_cast<double>(std::max<int64_t>(most, 2));
  double true_positives = 0, false_positives = 0;
  RocPoint last = curve.back();
  for (int64_t i = LogitHistogram::kBins - 1; i >= 0; --i) {
    const auto bin = static_cast<size_t>(i);
    if (histogram.positives[bin] + histogram.negatives[bin] == 0) continue;
    true_positives += histogram.positives[bin];
    false_positives += histogram.negatives[bin];
    const RocPoint next = {
        false_positives / negatives, true_positives / positives,
        LogitHistogram::LogitOf(i) - LogitHistogram::kLimit / LogitHistogram::kBins};
    const double length = next.false_positive_rate - curve.back().false_positive_rate +
                          next.true_positive_rate - curve.back().true_positive_rate;
    if (length > step) {
      // The point before a long step is a corner.
      if (last.logit < curve.back().logit) curve.push_back(last);
      curve.push_back(next);
    }
    last = next;
  }
  if (last.logit < curve.back().logit) curve.push_back(last);
  curve.back().false_positive_rate = curve.back().true_positive_rate = 1;
  return curve;
}

std::vector<CalibrationBin> CalibrationBins(const LogitHistogram& histogram, int64_t count) {
  constexpr double kZ = 1.959963984540054;
  const double all = SumOf(histogram.positives) + SumOf(histogram.negatives);
  std::vector<CalibrationBin> groups;
  CalibrationBin group;
  double below = 0, positives = 0;
  const double share = all / static_cast<double>(count);
  double wanted = share;
  const auto finish = [&] {
    const double n = group.weight, rate = positives / n, z2 = kZ * kZ / n;
    const double middle = (rate + z2 / 2) / (1 + z2);
    const double half = kZ * std::sqrt(rate * (1 - rate) / n + z2 / (4 * n)) / (1 + z2);
    group.predicted /= n;
    group.observed = rate;
    // Rounding must not put the share outside of its interval.
    group.lower = std::max(0.0, std::min(rate, middle - half));
    group.upper = std::min(1.0, std::max(rate, middle + half));
    groups.push_back(group);
    group = {};
    positives = 0;
  };
  for (const FilledBin& bin : FilledBinsOf(histogram)) {
    const double weight = bin.positives + bin.negatives;
    group.weight += weight;
    group.predicted += weight * SigmoidOf(bin.logit);
    positives += bin.positives;
    below += weight;
    if (below < wanted * (1 - 1e-12)) continue;
    finish();
    wanted = share * (std::floor(below / share * (1 + 1e-12)) + 1);
  }
  if (group.weight > 0) finish();
  return groups;
}

}  // namespace tenon
