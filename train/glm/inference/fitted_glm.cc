// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/fitted_glm.h"

#include <utility>

namespace tenon {

void FittedGlm::SetPenalised(PenalisedFits fits) {
  fit.coefficients = fits.fit.coefficients;
  fit.start_deviance = fits.start_deviance;
  fit.deviance = fits.fit.deviance;
  fit.passes = fits.passes;
  fit.converged = fits.fit.converged;
  if (penalty.is_none()) fit.aliased = fits.empty;
  penalised = std::move(fits);
}

}  // namespace tenon
