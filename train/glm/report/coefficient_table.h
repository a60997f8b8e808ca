// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/glm/result/glm_result.h"

namespace tenon {

/// The places of the coefficients that are shown, in their order: all of them, or the intercept, so
/// many with the largest |z| (under a penalty, the largest effect of one standard deviation), the
/// reference levels of the factors among these, and the first ones that have no estimate.
std::vector<size_t> ShownCoefficients(const GlmResult& result, bool all_of_them,
                                      int64_t num_largest);

/// The lines of the table of these coefficients.
std::vector<std::string> CoefficientLines(const GlmResult& result, const std::vector<size_t>& shown,
                                          int64_t width);

}  // namespace tenon
