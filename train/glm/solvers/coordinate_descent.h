// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

namespace tenon {

/// A quadratic function with a penalty: b'Ab / 2 - c'b + ridge / 2 |b|² + lasso |b|₁, where A is
/// symmetric and positive semidefinite.
struct ElasticNetProblem {
  const Eigen::MatrixXd& gram;    // A
  const Eigen::VectorXd& linear;  // c
  double ridge = 0, lasso = 0;
};

/// How far coefficients are from the minimum: the largest entry of the least subgradient, which is
/// 0 there (the conditions of Karush, Kuhn and Tucker). `gradient` is that of the likelihood, c -
/// Ab where it is quadratic.
double ElasticNetResidual(const Eigen::Ref<const Eigen::VectorXd>& gradient,
                          const Eigen::Ref<const Eigen::VectorXd>& b, double ridge, double lasso);

/// Minimises from `b` on, which gets the minimum, by coordinate descent with covariance updates and
/// active sets (Friedman, Hastie and Tibshirani 2010). Where columns depend on each other, descent
/// creeps: then the coefficients that are not 0 are solved for at once, up to where the first one
/// changes its sign. Gives the residual, which is at most `tolerance` but where rounding, or
/// `max_rounds` over all columns, do not let it be.
double MinimiseElasticNet(const ElasticNetProblem& problem, double tolerance, Eigen::VectorXd* b,
                          int max_rounds = 1000);

}  // namespace tenon
