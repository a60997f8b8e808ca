// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/status.h"
#include "train/glm/inference/fitted_glm.h"
#include "train/glm/model/glm_penalty.h"
#include "train/glm/result/glm_result.h"
#include "train/glm/rows/stream_fit.h"

namespace tenon {

/// InvalidArgument for options that a stream cannot have, and for a penalty that does not go with
/// one.
Status CheckStream(const StreamFitOptions& stream, const GlmPenalty& penalty);

/// Sets what a result has of a stream: what it did, its penalty and warnings; and takes away the
/// numbers that follow from a maximum of the likelihood alone. REQUIRES: `fitted` has a stream.
void DescribeStream(const FittedGlm& fitted, GlmResult* result);

}  // namespace tenon
