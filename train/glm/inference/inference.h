// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/glm/result/glm_covariance.h"
#include "train/glm/result/glm_result.h"

// Conclusions from estimates about the population: standard errors, tests and intervals.

namespace tenon {

/// Sets the standard errors, statistics, p values and intervals of the estimates with status kOk,
/// the joint tests of all terms, and the covariance. The statistics are z, and the joint tests chi
/// squared; where the dispersion is estimated, t and F with the residual degrees of freedom, and
/// also R², its adjusted form, sigma and F of the whole model, as R's summary.lm has them; with
/// robust standard errors that F is Wald's, from the covariance.
///
/// `covariance` is that of these estimates in their order: the dispersion times the inverse of
/// X'WX, or a robust one. `result` has its coefficients, dispersion, degrees of freedom, deviances
/// and level. Under a penalty nothing but the list of terms is set.
void AddInference(GlmCovariance covariance, GlmResult* result);

}  // namespace tenon
