// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <vector>

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

/// The factors of a lambda as glmnet counts it. `weight` is the sum of the rows' weights,
/// `response_deviation` 1 but for a gaussian model.
PenaltyFactors FactorsOf(const GlmPenalty& penalty, double lambda, double weight,
                         double response_deviation);

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

/// The lambdas of a path as in glmnet, from the largest down, with the one that was asked for; that
/// one alone without a path. `gradient` is where all coefficients that are not free are 0.
std::vector<double> LambdasOf(const GlmPenalty& penalty, const Eigen::VectorXd& gradient,
                              int64_t num_free, double weight, double num_rows);
/// Whether a path ends with the last of its fits, whose deviances these are.
bool IsEndOfPath(const std::vector<double>& deviances, double null_deviance, GlmFamily family);

}  // namespace tenon
