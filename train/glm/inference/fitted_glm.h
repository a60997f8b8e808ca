// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/glm/glm_sums.h"
#include "train/glm/formula/formula.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/model/glm_penalty.h"
#include "train/glm/rows/stream_fit.h"
#include "train/glm/solvers/fisher_scoring.h"
#include "train/glm/solvers/fit_method.h"
#include "train/glm/solvers/penalised_scoring.h"

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
  ChosenMethod chosen;
  /// With a penalty, or by a method that knows no information; then `fit` has no inverse.
  std::optional<PenalisedFits> penalised;
  std::optional<StreamFit> stream;  // then `fit` has no inverse
  /// With robust standard errors: the products of columns with the squares of scores.
  std::optional<ArrowMatrix> squares;

  void SetPenalised(PenalisedFits fits);
};

}  // namespace tenon
