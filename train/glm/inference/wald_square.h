// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "train/glm/result/glm_covariance.h"

namespace tenon {

/// Wald's statistic: the square of the distance of some estimates from zero in units of their
/// covariance. `estimates` are at `places`, in ascending order, of `covariance`. NaN where the
/// covariance is singular or has no numbers.
double WaldSquare(const GlmCovariance& covariance, const std::vector<int64_t>& places,
                  const std::vector<double>& estimates);

}  // namespace tenon
