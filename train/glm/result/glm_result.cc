// SPDX-License-Identifier: Apache-2.0
#include "train/glm/result/glm_result.h"

#include <algorithm>

namespace tenon {

std::string_view ToString(CoefficientStatus status) {
  switch (status) {
    case CoefficientStatus::kOk:
      return "ok";
    case CoefficientStatus::kReference:
      return "reference";
    case CoefficientStatus::kAliased:
      return "aliased";
    case CoefficientStatus::kSeparated:
      return "separated";
    case CoefficientStatus::kZero:
      return "zero";
  }
  return "unknown";
}

int64_t GlmResult::NumEstimated() const {
  return std::count_if(coefficients.begin(), coefficients.end(),
                       [](const GlmCoefficient& c) { return c.status == CoefficientStatus::kOk; });
}

}  // namespace tenon
