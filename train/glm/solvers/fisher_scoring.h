// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/status.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/solvers/arrow_cholesky.h"
#include "train/glm/solvers/likelihood_passes.h"

namespace tenon {

struct FisherScoringOptions {
  int max_passes = 30;
  /// The end: a change of the deviance by less than this part, as R's glm() ends.
  double tolerance = 1e-12;
  /// The intercept where all other coefficients are 0.
  double null_intercept = 0;
  /// Called after each pass with the coefficients that it was at, in units of the design; the norm
  /// of the gradient is in units of standard errors.
  std::function<void(int pass, double deviance, double gradient_norm,
                     const Eigen::VectorXd& coefficients)>
      progress = nullptr;
};

/// A maximum of the likelihood.
struct FisherScoringFit {
  Eigen::VectorXd coefficients;  // by column of the model, in units of its design; 0 for aliased
  ArrowCovariance inverse;       // of the information, with zeros for aliased columns
  std::vector<int64_t> aliased;
  std::vector<ColumnSum> dependences;  // of these, in units of the design
  /// 1 / (1 - R²) of each column on the others, weighted as in the last step; 1 for the intercept
  /// and aliased columns.
  Eigen::VectorXd variance_inflation;
  /// The least part that a column has left of its square beside those before it, and which one.
  double least_left = 1;
  int64_t least_left_column = -1;
  /// Columns whose coefficients still moved when the deviance did no more, and about which nearly
  /// no information is left: they have no finite estimate.
  std::vector<int64_t> growing;
  double start_deviance = 0;  // where all coefficients but the intercept are 0
  double deviance = 0;
  int passes = 0;
  bool converged = false;
};

/// Fisher's scoring (iteratively reweighted least squares, McCullagh and Nelder 1989, 2.5), whose
/// steps are halved while the deviance rises. `start` is by column of the model, in units of its
/// design. The model is settled. InvalidArgument when no rows
/// are left; Internal when a column is aliased in the last step that was not in the first.
StatusOr<FisherScoringFit> FitByFisherScoring(const GlmModel& model, const Eigen::VectorXd& start,
                                              const GlmSumsFunction& pass,
                                              const FisherScoringOptions& options = {});

}  // namespace tenon
