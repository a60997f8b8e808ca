// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/ordered_cholesky.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/LU>
#include <Eigen/QR>
#include <cmath>
#include <random>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Eigen::MatrixXd RandomMatrix(int64_t rows, int64_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Eigen::MatrixXd x(rows, columns);
  for (int64_t j = 0; j < columns; ++j) {
    // Columns of very different lengths.
    const double scale = std::pow(10, static_cast<int>(random() % 9) - 4);
    for (int64_t i = 0; i < rows; ++i) x(i, j) = scale * normal(random);
  }
  return x;
}

Eigen::MatrixXd GramOf(const Eigen::MatrixXd& x) { return x.transpose() * x; }

TEST(OrderedCholeskyTest, SolvesAsLeastSquaresDo) {
  for (const int64_t columns : {1, 2, 7, 60}) {
    const Eigen::MatrixXd x = RandomMatrix(200, columns, static_cast<unsigned>(columns));
    const Eigen::VectorXd y = RandomMatrix(200, 1, 99);
    const OrderedCholesky cholesky(GramOf(x));
    EXPECT_EQ(cholesky.rank(), columns);
    EXPECT_THAT(cholesky.aliased(), IsEmpty());
    const Eigen::VectorXd wanted = x.householderQr().solve(y);
    const Eigen::VectorXd found = cholesky.Solve(x.transpose() * y);
    EXPECT_LT(((found - wanted).array() / wanted.array()).abs().maxCoeff(), 1e-9);
    const Eigen::MatrixXd one = GramOf(x) * cholesky.Inverse();
    EXPECT_TRUE(one.isApprox(Eigen::MatrixXd::Identity(columns, columns), 1e-6));
  }
}

/// Columns that depend on those before them are left out, and the others are solved as if they
/// were alone.
TEST(OrderedCholeskyTest, AColumnThatDependsOnThoseBeforeItIsAliased) {
  Eigen::MatrixXd x = RandomMatrix(100, 6, 1);
  x.col(2) = 1.609344 * x.col(0);
  x.col(4) = x.col(1) - 2 * x.col(3);
  const OrderedCholesky cholesky(GramOf(x));
  EXPECT_THAT(cholesky.kept(), ElementsAre(0, 1, 3, 5));
  EXPECT_THAT(cholesky.aliased(), ElementsAre(2, 4));
  const ColumnSum km = cholesky.Dependence(2);
  ASSERT_EQ(km.parts.size(), 1u);
  EXPECT_EQ(km.parts[0].column, 0);
  EXPECT_NEAR(km.parts[0].factor, 1.609344, 1e-9);
  const ColumnSum sum = cholesky.Dependence(4);
  ASSERT_EQ(sum.parts.size(), 2u);
  EXPECT_EQ(sum.parts[0].column, 1);
  EXPECT_NEAR(sum.parts[0].factor, 1, 1e-8);
  EXPECT_EQ(sum.parts[1].column, 3);
  EXPECT_NEAR(sum.parts[1].factor, -2, 1e-8);

  Eigen::MatrixXd alone(100, 4);
  alone << x.col(0), x.col(1), x.col(3), x.col(5);
  const Eigen::VectorXd y = RandomMatrix(100, 1, 7);
  const Eigen::VectorXd wanted = alone.householderQr().solve(y);
  const Eigen::VectorXd found = cholesky.Solve(x.transpose() * y);
  for (const int64_t k : {0, 1, 2, 3}) {
    EXPECT_NEAR(found[cholesky.kept()[k]], wanted[k], 1e-9 * std::abs(wanted[k]));
  }
  EXPECT_EQ(found[2], 0);
  EXPECT_EQ(found[4], 0);
  const Eigen::MatrixXd inverse = cholesky.Inverse();
  EXPECT_EQ(inverse.row(4).cwiseAbs().sum(), 0);
  EXPECT_NEAR(inverse(5, 5), GramOf(alone).inverse()(3, 3), 1e-9 * inverse(5, 5));
}

TEST(OrderedCholeskyTest, ColumnsOfZerosAreAliased) {
  Eigen::MatrixXd x = RandomMatrix(10, 3, 1);
  x.col(1).setZero();
  const OrderedCholesky cholesky(GramOf(x));
  EXPECT_THAT(cholesky.aliased(), ElementsAre(1));
  EXPECT_THAT(cholesky.Dependence(1).parts, IsEmpty());
  EXPECT_EQ(OrderedCholesky(Eigen::MatrixXd(0, 0)).rank(), 0);
  EXPECT_EQ(OrderedCholesky(Eigen::MatrixXd::Zero(2, 2)).rank(), 0);
}

/// Columns of many blocks, with dependences within blocks and across them.
TEST(OrderedCholeskyTest, ManyColumnsAreSolvedAsThoseThatAreKept) {
  Eigen::MatrixXd x = RandomMatrix(400, 200, 5);
  const std::vector<int64_t> aliased = {3, 63, 64, 65, 130, 131, 199};
  for (const int64_t j : aliased) x.col(j) = 2 * x.col(j / 3) + x.col(j / 2);
  const Eigen::VectorXd y = RandomMatrix(400, 1, 6);
  const OrderedCholesky cholesky(GramOf(x));
  EXPECT_EQ(cholesky.aliased(), aliased);
  const Eigen::MatrixXd kept = x(Eigen::all, cholesky.kept());
  const Eigen::VectorXd wanted = kept.householderQr().solve(y);
  const Eigen::VectorXd found = cholesky.Solve(x.transpose() * y);
  EXPECT_LT(((found(cholesky.kept()) - wanted).array() / wanted.array()).abs().maxCoeff(), 1e-7);
  const Eigen::MatrixXd one = GramOf(kept) * cholesky.Inverse()(cholesky.kept(), cholesky.kept());
  EXPECT_TRUE(one.isApprox(Eigen::MatrixXd::Identity(193, 193), 1e-6));
  for (const int64_t j : aliased) {
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(400);
    for (const ColumnSum::Part& part : cholesky.Dependence(j).parts) {
      sum += part.factor * x.col(part.column);
    }
    EXPECT_TRUE(sum.isApprox(x.col(j), 1e-6)) << j;
  }
}

TEST(OrderedCholeskyTest, NearlyDependentColumnsAreKeptAndSaid) {
  Eigen::MatrixXd x = RandomMatrix(100, 2, 3);
  x.col(0).normalize();
  x.col(1) = x.col(0) + 1e-4 * RandomMatrix(100, 1, 4).normalized();
  const OrderedCholesky cholesky(GramOf(x));
  EXPECT_EQ(cholesky.rank(), 2);
  EXPECT_LT(cholesky.least_left(), 2e-8);
  EXPECT_GT(cholesky.least_left(), 1e-9);
}

}  // namespace
}  // namespace tenon
