// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/status.h"
#include "ops/glm/glm_sums.h"
#include "train/glm/glm_model.h"
#include "train/glm/ordered_cholesky.h"

namespace tenon {

/// Makes a pass over all rows of a table; see AddGlmSums.
using GlmSumsFunction = std::function<StatusOr<std::vector<double>>(
    const GlmSumsLayout& layout, absl::Span<const double> coefficients)>;

struct FisherScoringOptions {
  int max_passes = 30;
  /// The end: a change of the deviance by less than this part, as R's glm() ends.
  double tolerance = 1e-12;
  /// Called after each pass with the coefficients that it was at, in units of the design; the norm
  /// of the gradient is in units of standard errors.
  std::function<void(int pass, double deviance, double gradient_norm,
                     const Eigen::VectorXd& coefficients)>
      progress = nullptr;
};

/// A maximum of the likelihood.
struct FisherScoringFit {
  Eigen::VectorXd coefficients;  // by column of the model, in units of its design; 0 for aliased
  Eigen::MatrixXd inverse;       // of the information, with zeros for aliased columns
  std::vector<int64_t> aliased;
  std::vector<ColumnSum> dependences;  // of these, in units of the design
  double start_deviance = 0;           // where all coefficients but the intercept are 0
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
