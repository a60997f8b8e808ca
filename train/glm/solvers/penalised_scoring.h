// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/status.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/model/glm_penalty.h"
#include "train/glm/solvers/likelihood_passes.h"

namespace tenon {

struct PenalisedScoringOptions {
  int max_passes = 50;  // for each lambda
  /// The end: a residual of at most this. The second one is that of each fit of a path.
  double tolerance = 1e-11, path_tolerance = 1e-7;
  /// The coefficients to go on from, in units of the design, where there is no path; empty: from
  /// the intercept alone, which has a pass in any case.
  Eigen::VectorXd start = {};
  /// Called after each pass with the coefficients that it was at, in units of the design.
  std::function<void(int pass, double deviance, double residual,
                     const Eigen::VectorXd& coefficients)>
      progress = nullptr;
};

/// A minimum of deviance / 2 + the penalty.
struct PenalisedFit {
  double lambda = 0;             // 0 under a ridge alone
  Eigen::VectorXd coefficients;  // by column of the model, in units of its design
  Eigen::VectorXd standardised;  // the same as the penalty counts them
  double deviance = 0;
  double objective = 0;
  /// The largest entry of the least subgradient of the objective by standardised coefficients,
  /// divided by the sum of weights and, for a gaussian model, by the deviation of the response.
  double residual = 0;
  bool converged = false;
};

struct PenalisedFits {
  PenalisedFit fit;
  std::vector<PenalisedFit> path;  // from the largest lambda down
  double null_deviance = 0;        // of the intercept and offsets alone, where there is a lambda
  double start_deviance = 0;       // where all coefficients but the intercept are 0
  double response_deviation = 1;   // as the objective of a gaussian elastic net has it
  double weight = 0;               // the sum of weights, which multiplies lambda
  std::vector<int64_t> empty;      // columns that are 0 in all rows, as far as a method has seen
  int passes = 0;
};

/// Newton's steps, of which each one minimises the quadratic approximation of the likelihood and
/// the penalty: at once, or by coordinate descent where there are absolute values. Steps are halved
/// while the objective rises. For a linear model the first approximation is exact, so that a path
/// needs a pass to begin and one to see that its result is right. The model is settled, `totals`
/// are those of its rows. InvalidArgument when no rows are left.
StatusOr<PenalisedFits> FitPenalised(const GlmModel& model, double intercept,
                                     const GlmTotals& totals, const GlmPenalty& penalty,
                                     const GlmSumsFunction& pass,
                                     const PenalisedScoringOptions& options = {});

}  // namespace tenon
