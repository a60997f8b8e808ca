// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/arrow_cholesky.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <random>
#include <vector>

#include "train/glm/inference/wald_square.h"
#include "train/glm/result/glm_covariance.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kRows = 400;

/// Columns of numbers with the indicators of a factor's levels between them.
struct Columns {
  Eigen::MatrixXd x;
  ColumnRange levels;
};

Columns RandomColumns(int64_t num_others, ColumnRange levels, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Columns columns = {Eigen::MatrixXd::Zero(kRows, num_others + levels.count), levels};
  for (int64_t i = 0; i < kRows; ++i) {
    // The reference has no column.
    const auto level = static_cast<int64_t>(random() % (levels.count + 1));
    if (level < levels.count) columns.x(i, levels.begin + level) = 1;
    for (int64_t j = 0; j < columns.x.cols(); ++j) {
      if (j < levels.begin || j >= levels.begin + levels.count) {
        columns.x(i, j) = j == 0 ? 1 : normal(random) + static_cast<double>(level) / 10;
      }
    }
  }
  return columns;
}

Eigen::VectorXd WeightsOf(unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> weight(0.1, 2);
  return Eigen::VectorXd::NullaryExpr(kRows, [&] { return weight(random); });
}

ArrowMatrix ArrowOf(const Eigen::MatrixXd& dense, ColumnRange levels) {
  ArrowMatrix arrow = ArrowMatrix::Of(dense.rows(), levels);
  std::vector<int64_t> others;
  for (int64_t i = 0; i < arrow.num_others(); ++i) others.push_back(arrow.ColumnOf(i));
  arrow.others = dense(others, others);
  arrow.crossed = dense(others, Eigen::seqN(levels.begin, levels.count));
  arrow.own = dense.diagonal().segment(levels.begin, levels.count);
  return arrow;
}

GlmCovariance CovarianceOf(const ArrowCovariance& blocks) {
  const auto numbers_of = [](const Eigen::MatrixXd& matrix) {
    return std::vector<double>(matrix.data(), matrix.data() + matrix.size());
  };
  return GlmCovariance({blocks.levels.begin, blocks.levels.count, numbers_of(blocks.others),
                        numbers_of(blocks.crossed), numbers_of(blocks.left),
                        numbers_of(blocks.right), numbers_of(blocks.own)});
}

double WaldOfDense(const Eigen::MatrixXd& covariance, const std::vector<int64_t>& places,
                   const Eigen::VectorXd& b) {
  const Eigen::MatrixXd own = covariance(places, places);
  return b.dot(own.ldlt().solve(b));
}

class ArrowTest : public ::testing::TestWithParam<ColumnRange> {};

TEST_P(ArrowTest, BlocksSayWhatTheDenseMatrixDoes) {
  const Columns columns = RandomColumns(6, GetParam(), 1);
  const Eigen::MatrixXd dense = columns.x.transpose() * WeightsOf(2).asDiagonal() * columns.x;
  ArrowMatrix arrow = ArrowOf(dense, columns.levels);
  EXPECT_TRUE(arrow.Dense().isApprox(dense, 1e-15));
  EXPECT_EQ(arrow.Diagonal(), dense.diagonal());
  const Eigen::VectorXd vector = Eigen::VectorXd::LinSpaced(dense.rows(), -1, 2);
  EXPECT_TRUE(arrow.Times(vector).isApprox(dense * vector, 1e-14));
  arrow.Scale(vector);
  EXPECT_TRUE(arrow.Dense().isApprox(vector.asDiagonal() * dense * vector.asDiagonal(), 1e-14));
}

TEST_P(ArrowTest, SolutionsAndInversesAreThoseOfTheDenseMatrix) {
  const Columns columns = RandomColumns(6, GetParam(), 3);
  const Eigen::MatrixXd dense = columns.x.transpose() * WeightsOf(4).asDiagonal() * columns.x;
  const Eigen::MatrixXd squares = columns.x.transpose() * WeightsOf(5).asDiagonal() * columns.x;
  const ArrowCholesky cholesky(ArrowOf(dense, columns.levels));
  EXPECT_EQ(cholesky.rank(), dense.rows());
  EXPECT_THAT(cholesky.aliased(), IsEmpty());
  const Eigen::VectorXd right = columns.x.transpose() * WeightsOf(6);
  EXPECT_TRUE(cholesky.Solve(right).isApprox(dense.ldlt().solve(right), 1e-10));
  const Eigen::MatrixXd inverse = dense.inverse();
  EXPECT_TRUE(cholesky.Inverse().Dense().isApprox(inverse, 1e-10));
  EXPECT_TRUE(cholesky.Inverse().Diagonal().isApprox(inverse.diagonal(), 1e-10));
  const ArrowCovariance sandwich = Sandwich(cholesky.Inverse(), ArrowOf(squares, columns.levels));
  EXPECT_TRUE(sandwich.Dense().isApprox(inverse * squares * inverse, 1e-10));
}

TEST_P(ArrowTest, CovariancesAndWaldsTestAreThoseOfTheDenseMatrix) {
  const Columns columns = RandomColumns(5, GetParam(), 7);
  const Eigen::MatrixXd dense = columns.x.transpose() * columns.x;
  const Eigen::MatrixXd squares = columns.x.transpose() * WeightsOf(8).asDiagonal() * columns.x;
  const ArrowCovariance inverse = ArrowCholesky(ArrowOf(dense, columns.levels)).Inverse();
  for (const ArrowCovariance& blocks :
       {inverse, Sandwich(inverse, ArrowOf(squares, columns.levels))}) {
    const Eigen::MatrixXd wanted = blocks.Dense();
    const GlmCovariance found = CovarianceOf(blocks);
    ASSERT_EQ(found.size(), wanted.rows());
    for (int64_t i = 0; i < wanted.rows(); ++i) {
      for (int64_t j = 0; j < wanted.rows(); ++j) {
        ASSERT_NEAR(found(i, j), wanted(i, j), 1e-12 * wanted.norm()) << i << ", " << j;
      }
    }
    std::vector<int64_t> all, levels, others;
    for (int64_t i = 0; i < wanted.rows(); ++i) {
      const bool is_level =
          i >= columns.levels.begin && i < columns.levels.begin + columns.levels.count;
      all.push_back(i);
      (is_level ? levels : others).push_back(i);
    }
    for (const auto& places : {all, levels, others}) {
      const Eigen::VectorXd b =
          Eigen::VectorXd::LinSpaced(static_cast<int64_t>(places.size()), 1, 3);
      const double square = WaldSquare(found, places, {b.data(), b.data() + b.size()});
      const double expected = WaldOfDense(wanted, places, b);
      EXPECT_NEAR(square, expected, 1e-8 * expected) << places.size();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ArrowTest,
                         ::testing::Values(ColumnRange{0, 0}, ColumnRange{1, 3}, ColumnRange{3, 20},
                                           ColumnRange{5, 7}, ColumnRange{2, 40}));

/// More levels than a dense matrix is made for.
TEST(WaldSquareTest, ThousandsOfLevelsAreTestedByBlocks) {
  constexpr int64_t kLevels = 700;
  std::mt19937 random(9);
  std::normal_distribution<double> normal;
  ArrowMatrix gram = ArrowMatrix::Of(kLevels + 3, {1, kLevels});
  gram.own =
      Eigen::VectorXd::NullaryExpr(kLevels, [&] { return 2 + 9 * std::abs(normal(random)); });
  gram.crossed = Eigen::MatrixXd::NullaryExpr(3, kLevels, [&] { return normal(random); });
  gram.others = 2 * gram.crossed * gram.crossed.transpose();
  const ArrowCovariance blocks = ArrowCholesky(gram).Inverse();
  std::vector<int64_t> places(kLevels + 1);
  for (int64_t i = 0; i <= kLevels; ++i) places[i] = i + 1;
  const Eigen::VectorXd b =
      Eigen::VectorXd::NullaryExpr(kLevels + 1, [&] { return normal(random); });
  const double expected = WaldOfDense(blocks.Dense(), places, b);
  EXPECT_NEAR(WaldSquare(CovarianceOf(blocks), places, {b.data(), b.data() + b.size()}), expected,
              1e-10 * expected);
}

/// A sum of levels stands before them and after them.
TEST(ArrowCholeskyTest, AColumnThatTheLevelsExplainIsAliasedAndSaidSo) {
  for (const int64_t place : {1, 9}) {
    Columns columns = RandomColumns(4, {2 + (place == 1), 6}, 10);
    const int64_t begin = columns.levels.begin;
    const int64_t column = place == 1 ? 1 : 9;
    columns.x.col(column) =
        2 * columns.x.col(begin) - columns.x.col(begin + 4) + 3 * columns.x.col(0);
    const Eigen::MatrixXd dense = columns.x.transpose() * columns.x;
    const ArrowCholesky cholesky(ArrowOf(dense, columns.levels));
    EXPECT_THAT(cholesky.aliased(), ElementsAre(column));
    const ColumnSum sum = cholesky.Dependence(column);
    ASSERT_EQ(sum.parts.size(), 3u);
    EXPECT_EQ(sum.parts[0].column, 0);
    EXPECT_NEAR(sum.parts[0].factor, 3, 1e-8);
    EXPECT_EQ(sum.parts[1].column, begin);
    EXPECT_NEAR(sum.parts[1].factor, 2, 1e-8);
    EXPECT_EQ(sum.parts[2].column, begin + 4);
    EXPECT_NEAR(sum.parts[2].factor, -1, 1e-8);
    const Eigen::VectorXd right = columns.x.transpose() * WeightsOf(11);
    const Eigen::VectorXd found = cholesky.Solve(right);
    EXPECT_EQ(found[column], 0);
    EXPECT_TRUE((dense * found).isApprox(right, 1e-9));
    EXPECT_EQ(cholesky.Inverse().Diagonal()[column], 0);
  }
}

/// No row has information about the level.
TEST(ArrowCholeskyTest, LevelsOfZerosAreAliased) {
  Columns columns = RandomColumns(3, {1, 5}, 12);
  columns.x.col(3).setZero();
  const ArrowCholesky cholesky(ArrowOf(columns.x.transpose() * columns.x, columns.levels));
  EXPECT_THAT(cholesky.aliased(), ElementsAre(3));
  EXPECT_EQ(cholesky.rank(), 7);
  EXPECT_EQ(cholesky.Inverse().Diagonal()[3], 0);
  EXPECT_EQ(cholesky.Solve(Eigen::VectorXd::Ones(8))[3], 0);
  EXPECT_THAT(cholesky.Dependence(3).parts, IsEmpty());
}

}  // namespace
}  // namespace tenon
