// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <functional>

#include "core/base/status.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/model/glm_penalty.h"
#include "train/glm/solvers/likelihood_passes.h"
#include "train/glm/solvers/penalised_scoring.h"

namespace tenon {

struct QuasiNewtonOptions {
  int max_passes = 1000;  // for each lambda
  /// The end: a residual of at most this, that of each fit of a path, and what is still good where
  /// rounding or the passes let it be no less.
  double tolerance = 1e-8, path_tolerance = 1e-7, good = 1e-7;
  /// The coefficients to go on from, in units of the design, where there is no path; empty: from
  /// the intercept alone, which has a pass in any case.
  Eigen::VectorXd start = {};
  /// Called after each step with the number of passes and the coefficients, in units of the design.
  std::function<void(int pass, double deviance, double residual,
                     const Eigen::VectorXd& coefficients)>
      progress = nullptr;
};

/// Makes deviance / 2 + the penalty, if there is one, least from gradients alone, so that memory
/// and the work of a pass grow with the columns and not with their pairs: L-BFGS, with absolute
/// values OWL-QN, on columns that count in units in which the first pass knows as much of each of
/// them. The model is settled, `totals` are those of its rows; `intercept` is the best one where
/// all other coefficients are 0. A column that is 0 in all rows keeps the coefficient 0; which ones
/// are sums of others is not found. InvalidArgument when no rows are left.
StatusOr<PenalisedFits> FitByQuasiNewton(const GlmModel& model, double intercept,
                                         const GlmTotals& totals, const GlmPenalty& penalty,
                                         const GlmSumsFunction& pass,
                                         const QuasiNewtonOptions& options = {});

}  // namespace tenon
