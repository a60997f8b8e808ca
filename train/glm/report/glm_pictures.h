// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/glm/result/glm_result.h"

// Pictures of a fitted model as SVG. A picture of which the result has no numbers is empty text.

namespace tenon {

/// The ROC curve of each set of data that has a histogram, with its AUC.
std::string RocSvg(const GlmResult& result);

/// The share of positives, with its interval, in groups of like predictions.
std::string CalibrationSvg(const GlmResult& result);

/// The estimates with the largest |z|, at most 40 and without the intercept, and their intervals;
/// under a penalty the largest effects of one standard deviation, without intervals.
std::string CoefficientsSvg(const GlmResult& result);

}  // namespace tenon
