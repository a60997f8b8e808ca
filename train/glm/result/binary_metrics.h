// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/glm/glm_scores.h"

// How well predicted probabilities tell positives from negatives, from a histogram that parts of
// the data fill apart from each other and that are then added up.

namespace tenon {

/// The weights of the positives and of the negatives by the logit of their predictions, in bins of
/// equal width; predictions beyond the range are in the first and the last one.
struct LogitHistogram {
  static constexpr int64_t kBins = LogitBins::kCount;
  static constexpr double kLimit = LogitBins::kLimit;

  /// Logits from 0 on, which are probabilities from 1/2 on, are in the upper half of the bins. A
  /// NaN is in the first one.
  static int64_t BinOf(double logit) {
    const double bin = std::floor((logit + kLimit) * (kBins / (2 * kLimit)));
    return bin > 0 ? static_cast<int64_t>(std::min<double>(bin, kBins - 1)) : 0;
  }
  /// The logit in the middle of a bin.
  static double LogitOf(int64_t bin) {
    return (static_cast<double>(bin) + 0.5) * (2 * kLimit / kBins) - kLimit;
  }

  void Add(double logit, bool is_positive, double weight = 1) {
    (is_positive ? positives : negatives)[static_cast<size_t>(BinOf(logit))] += weight;
  }
  void Add(const LogitHistogram& other);

  std::vector<double> positives = std::vector<double>(kBins);
  std::vector<double> negatives = std::vector<double>(kBins);
};

/// Numbers of a histogram. Accuracy, precision and recall are exact. AUC is within 1e-4 of that by
/// rank where the logits spread by 1 or more, and where they lie within few bins (of 1/1024) within
/// its own sampling error; the others are within 1e-3 of themselves. NaN where a number has no
/// meaning, as the AUC of one class.
struct BinaryScores {
  double positives = 0, negatives = 0;  // their weights
  double auc = 0;
  double accuracy = 0, precision = 0, recall = 0;  // at probability 1/2
  double log_loss = 0, brier = 0;
  /// The logistic regression of the labels on the logit of the prediction.
  double calibration_intercept = 0, calibration_slope = 0;
};
BinaryScores ScoresOf(const LogitHistogram& histogram);

/// A point of the ROC curve: the rates among the negatives and the positives at and above a logit.
struct RocPoint {
  double false_positive_rate = 0, true_positive_rate = 0;
  double logit = 0;  // the lower edge of the last bin that is counted
};

/// The curve from (0, 0) to (1, 1), with at most about `most` points, such that both rates grow
/// between them evenly. Empty where there is but one class.
std::vector<RocPoint> RocCurve(const LogitHistogram& histogram, int64_t most = 512);

/// Rows whose predictions are alike.
struct CalibrationBin {
  double weight = 0;
  double predicted = 0;         // the mean probability
  double observed = 0;          // the share of positives
  double lower = 0, upper = 0;  // Wilson's interval of 95 % for it
};

/// At most `count` groups by increasing prediction, of about equal weight.
std::vector<CalibrationBin> CalibrationBins(const LogitHistogram& histogram, int64_t count = 20);

}  // namespace tenon
