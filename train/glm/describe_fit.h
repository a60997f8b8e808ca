// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/glm/glm_sums.h"
#include "train/glm/fisher_scoring.h"
#include "train/glm/formula.h"
#include "train/glm/glm_model.h"
#include "train/glm/glm_penalty.h"
#include "train/glm/glm_result.h"
#include "train/glm/penalised_scoring.h"

namespace tenon {

/// A level whose responses are all alike.
struct SeparatedLevel {
  size_t variable;  // in the formula
  std::string level;
  double rows, response;  // the response of each of its rows
  bool is_kept;           // otherwise the level is left out with its rows
};

/// A model as the steps of a fit leave it.
struct FittedGlm {
  GlmFamily family = GlmFamily::kGaussian;
  Formula formula;
  std::optional<GlmModel> model;  // settled
  GlmTotals totals;               // of the rows that are used
  std::vector<GlmModel::LevelSums> level_sums;
  std::vector<SeparatedLevel> separated;
  FisherScoringFit fit;
  GlmPenalty penalty;
  std::optional<PenalisedFits> penalised;  // with a penalty; then `fit` has no inverse

  void SetPenalised(PenalisedFits fits);
};

/// Sets what follows from a fit: rows, deviances, degrees of freedom, coefficients in the units of
/// the data with their inference, and warnings. The result has the names of its formula, response
/// and family, its level and its null deviance.
void DescribeFit(const FittedGlm& fitted, GlmResult* result);

}  // namespace tenon
