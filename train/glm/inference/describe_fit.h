// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/glm/inference/fitted_glm.h"
#include "train/glm/result/glm_result.h"

namespace tenon {

/// Sets what follows from a fit: rows, deviances, degrees of freedom, coefficients in the units of
/// the data with their inference, and warnings. The result has the names of its formula, response
/// and family, its level and its null deviance.
void DescribeFit(const FittedGlm& fitted, GlmResult* result);

}  // namespace tenon
