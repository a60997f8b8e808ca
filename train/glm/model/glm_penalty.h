// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon {

/// The columns whose coefficients a penalty counts by one standard deviation of the column, by 1/n
/// and with the weights of rows; others it counts by one unit.
enum class StandardisedColumns : uint8_t {
  kAll,      // indicators of levels too, as in glmnet
  kNumeric,  // columns with a number, as one does for scikit-learn
  kNone,
};

/// A sum that a fit adds to deviance / 2 before it makes both least. The intercept is free of it.
struct GlmPenalty {
  /// ridge / 2 x the sum of squares.
  double ridge = 0;
  /// As in glmnet: the sum of weights x lambda x ((1 - alpha) / 2 x the sum of squares + alpha x
  /// the sum of absolute values), where for a gaussian model the first of these is divided by the
  /// standard deviation of the response. Not both this and `ridge`.
  double lambda = 0, alpha = 1;
  /// So many fits, from the least lambda at which all coefficients are 0 down, as in glmnet, beside
  /// that with `lambda`, which is the result; the last of them where it is 0.
  int64_t path = 0;
  StandardisedColumns standardised = StandardisedColumns::kAll;

  bool is_none() const { return !(ridge > 0) && !(lambda > 0) && path == 0; }
};

}  // namespace tenon
