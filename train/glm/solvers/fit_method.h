// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "train/glm/model/glm_penalty.h"

namespace tenon {

class GlmModel;

/// How the best coefficients are found.
enum class GlmMethod : uint8_t {
  kAuto,    // as the columns of the model want it
  kNewton,  // from gradient and information: exact in some passes, with standard errors
  kLbfgs,   // from gradients alone: for models whose information is too large
};

/// Which method a fit has, and why.
struct ChosenMethod {
  GlmMethod method = GlmMethod::kNewton;  // not kAuto
  int64_t newton_bytes = 0;               // what the information of the model takes
  std::string reason = {};                // of a method that chose itself and is not Newton's
  std::string notice = {};                // what Newton's is about to take, where that is much
};

/// The method for a settled model: Newton's, unless `wanted` is another one, or kAuto and the model
/// has more columns beside the levels of its largest factor, where there are absolute values with
/// these, than its information is good for. ResourceExhausted where Newton's is wanted and the sums
/// of a pass would be more than a pass can have.
StatusOr<ChosenMethod> ChooseMethod(const GlmModel& model, const GlmPenalty& penalty,
                                    GlmMethod wanted);

}  // namespace tenon
