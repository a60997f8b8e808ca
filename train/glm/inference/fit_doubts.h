// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/glm/inference/fitted_glm.h"

namespace tenon {

/// Warnings of a fit without a penalty whose numbers are less than they look: numbers that the
/// other terms nearly determine, columns of which rounding may have taken digits, and coefficients
/// that would grow without end because they separate the responses.
std::vector<std::string> DoubtsOf(const FittedGlm& fitted);

}  // namespace tenon
