// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/base/status.h"
#include "ops/glm/glm_family.h"
#include "train/glm/model/glm_model.h"
#include "train/glm/model/glm_penalty.h"

// What a penalty means for the columns of a model, whatever makes the objective least.

namespace tenon {

/// The factors of a penalty on standardised coefficients: ridge / 2 x the sum of squares + lasso x
/// the sum of absolute values. A ridge of its own has the lambda 0.
struct PenaltyFactors {
  double lambda = 0, ridge = 0, lasso = 0;
};

/// The information of 1 with itself, of each column with 1 and of each column with itself, where
/// all rows have the same predictor, so that it is a multiple of their weights.
struct ColumnInformation {
  double of_one = 0;
  Eigen::VectorXd with_one, with_itself;
};

/// How often a coefficient of the design is a standardised one, by column of a model: 1 for the
/// intercept.
Eigen::VectorXd PenaltyScales(const GlmModel& model, StandardisedColumns standardised,
                              const ColumnInformation& information);

/// The penalty of coefficients, of which the first `num_free` are free.
double PenaltyAt(const PenaltyFactors& factors, const Eigen::VectorXd& standardised,
                 int64_t num_free);
/// The largest entry of the least subgradient of the objective. `gradient` is that of the
/// likelihood.
double PenaltyResidual(const PenaltyFactors& factors, const Eigen::VectorXd& gradient,
                       const Eigen::VectorXd& standardised, int64_t num_free);

/// The model without the columns that a penalty counts, where a path begins.
struct PathStart {
  Eigen::VectorXd gradient;  // by standardised coefficient
  double deviance = 0;
  double weight = 0;  // the sum of the rows' weights
  double num_rows = 0;
  double response_deviation = 1;  // other than 1 for a gaussian model alone
  GlmFamily family = GlmFamily::kGaussian;
};

/// Has `fit` make the fits of a path as in glmnet, from the largest lambda down until the path is
/// at its end, and that of the lambda that was asked for, which is alone without a path. `fit`
/// gives the deviance.
Status FollowLambdas(
    const GlmPenalty& penalty, const PathStart& start, int64_t num_free,
    absl::FunctionRef<StatusOr<double>(const PenaltyFactors& factors, bool is_wanted)> fit);

}  // namespace tenon
