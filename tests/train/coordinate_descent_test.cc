// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/coordinate_descent.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <limits>
#include <random>

namespace tenon {
namespace {

double ObjectiveOf(const ElasticNetProblem& p, const Eigen::VectorXd& b) {
  return b.dot(p.gram * b) / 2 - p.linear.dot(b) + p.ridge / 2 * b.squaredNorm() +
         p.lasso * b.lpNorm<1>();
}

/// The minimum, found by trying all signs: -1, 0 and 1 for each coefficient.
Eigen::VectorXd MinimumBySigns(const ElasticNetProblem& p) {
  const int64_t size = p.linear.size();
  Eigen::VectorXd best = Eigen::VectorXd::Zero(size);
  const auto cases = static_cast<int64_t>(std::pow(3, size));
  for (int64_t which = 0; which < cases; ++which) {
    Eigen::VectorXd signs(size);
    int64_t rest = which;
    for (int64_t j = 0; j < size; ++j, rest /= 3) signs[j] = static_cast<double>(rest % 3 - 1);
    Eigen::MatrixXd a = p.gram;
    a.diagonal().array() += p.ridge;
    Eigen::VectorXd c = p.linear - p.lasso * signs;
    for (int64_t j = 0; j < size; ++j) {
      if (signs[j] != 0) continue;
      a.row(j).setZero();
      a(j, j) = 1;
      c[j] = 0;
    }
    const Eigen::VectorXd b = a.fullPivLu().solve(c);
    if (ObjectiveOf(p, b) < ObjectiveOf(p, best)) best = b;
  }
  return best;
}

TEST(CoordinateDescentTest, TheMinimumIsThatOfAllSigns) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 24; ++trial) {
    const int64_t size = 1 + trial % 6;
    Eigen::MatrixXd x(20, size);
    for (double& value : x.reshaped()) value = normal(random);
    // Columns that nearly depend on each other, as descent by coordinates likes least.
    if (size > 2 && trial % 2 == 0) {
      x.col(size - 1) = x.col(0) + x.col(1) + 1e-3 * x.col(size - 1);
    }
    Eigen::VectorXd y(20);
    for (double& value : y) value = normal(random);
    const Eigen::MatrixXd gram = x.transpose() * x;
    const Eigen::VectorXd linear = x.transpose() * y;
    for (const double lasso : {0.0, 0.1, 1.0, 5.0, 1e3}) {
      for (const double ridge : {0.0, 0.5}) {
        const ElasticNetProblem problem = {gram, linear, ridge, lasso};
        Eigen::VectorXd b = Eigen::VectorXd::Zero(size);
        const double residual = MinimiseElasticNet(problem, 1e-9, &b);
        SCOPED_TRACE(trial);
        EXPECT_LE(residual, 1e-9);
        const Eigen::VectorXd wanted = MinimumBySigns(problem);
        EXPECT_LE(ObjectiveOf(problem, b), ObjectiveOf(problem, wanted) + 1e-8);
        EXPECT_LT((b - wanted).cwiseAbs().maxCoeff(), 1e-4);
      }
    }
  }
}

TEST(CoordinateDescentTest, AWarmStartEndsInTheSamePlace) {
  std::mt19937 random(6);
  std::normal_distribution<double> normal;
  Eigen::MatrixXd x(200, 80);
  for (double& value : x.reshaped()) value = normal(random);
  const Eigen::MatrixXd gram = x.transpose() * x;
  const Eigen::VectorXd linear = x.transpose() * x.col(3) + 10 * x.row(7).transpose();
  Eigen::VectorXd warm = Eigen::VectorXd::Zero(80);
  for (const double lasso : {100.0, 30.0, 10.0, 3.0, 1.0, 0.1}) {
    const ElasticNetProblem problem = {gram, linear, 0, lasso};
    EXPECT_LE(MinimiseElasticNet(problem, 1e-9, &warm), 1e-9);
    Eigen::VectorXd cold = Eigen::VectorXd::Zero(80);
    EXPECT_LE(MinimiseElasticNet(problem, 1e-9, &cold), 1e-9);
    EXPECT_LT((warm - cold).cwiseAbs().maxCoeff(), 1e-9);
  }
}

TEST(CoordinateDescentTest, EqualColumnsAndColumnsOfZerosAreNoTrouble) {
  Eigen::MatrixXd gram(3, 3);
  gram << 2, 2, 0, 2, 2, 0, 0, 0, 0;
  const Eigen::VectorXd linear = Eigen::Vector3d(3, 3, 0);
  Eigen::VectorXd b = Eigen::VectorXd::Zero(3);
  EXPECT_LE(MinimiseElasticNet({gram, linear, 0, 1}, 1e-12, &b), 1e-12);
  EXPECT_NEAR(b[0] + b[1], 1, 1e-12);
  EXPECT_EQ(b[2], 0);
}

TEST(CoordinateDescentTest, TheResidualTellsWhatIsWrong) {
  const Eigen::VectorXd gradient = Eigen::Vector3d(0.5, 2, -3);
  const Eigen::VectorXd b = Eigen::Vector3d(0, 1, -1);
  EXPECT_DOUBLE_EQ(ElasticNetResidual(gradient, b, 0, 2), 1);
  EXPECT_DOUBLE_EQ(ElasticNetResidual(gradient, b, 1, 1), 1);
  const Eigen::VectorXd nan = Eigen::Vector3d(0, std::numeric_limits<double>::quiet_NaN(), 0);
  EXPECT_TRUE(std::isnan(ElasticNetResidual(nan, b, 0, 5)));
}

}  // namespace
}  // namespace tenon
