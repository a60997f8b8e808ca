// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/glm/result/glm_result.h"

namespace tenon {

/// The coefficients of a path of penalties, as the penalty counts them, by the logarithm of lambda,
/// as SVG; those that end largest have their names. Empty text without a path of two fits.
std::string PathSvg(const GlmResult& result);

}  // namespace tenon
