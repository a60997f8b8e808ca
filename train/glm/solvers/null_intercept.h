// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/solvers/likelihood_passes.h"

namespace tenon {

/// The intercept that is best beside the offsets alone, in units of the design, by Newton's steps
/// from `start` that stay where the maximum has to be. The model is settled and has an intercept.
StatusOr<double> FindNullIntercept(const GlmModel& model, double start,
                                   const GlmSumsFunction& pass);

}  // namespace tenon
