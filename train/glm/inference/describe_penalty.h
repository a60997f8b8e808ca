// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/base/status.h"
#include "train/glm/inference/fitted_glm.h"
#include "train/glm/model/glm_penalty.h"
#include "train/glm/result/glm_result.h"

namespace tenon {

/// InvalidArgument for factors that are negative, contradict each other, or an alpha outside of [0,
/// 1].
Status CheckPenalty(const GlmPenalty& penalty);

/// Sets what a penalty gives beside the fit: the penalty, its objective in words, the residual, the
/// path and warnings; and takes away the numbers that count parameters, of which a penalised fit
/// has no whole number. REQUIRES: `fitted` has a penalised fit, `result` the rest.
void DescribePenalty(const FittedGlm& fitted, GlmResult* result);

/// Sets the ridge, lasso, or alpha and lambda of a result.
void NamePenalty(const GlmPenalty& penalty, double lambda, GlmResult* result);
/// Warns of levels whose responses are all alike, with the words for why they have an estimate.
void WarnOfSeparated(const FittedGlm& fitted, std::string_view why, GlmResult* result);

}  // namespace tenon
