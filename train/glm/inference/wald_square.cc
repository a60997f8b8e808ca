// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/wald_square.h"

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

/// The covariance of so many estimates is made a dense matrix, whatever the blocks are.
constexpr size_t kMostDense = 500;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Rows = Eigen::Map<const Eigen::MatrixXd>;

double DenseSquare(const Eigen::MatrixXd& covariance, const Eigen::VectorXd& b) {
  if (b.size() == 0) return 0;
  // Each estimate in units of its standard error leaves a matrix of correlations, of good condition
  // also where columns have very different units.
  const Eigen::VectorXd scale = covariance.diagonal().cwiseSqrt().cwiseInverse();
  const Eigen::LLT<Eigen::MatrixXd> correlation(scale.asDiagonal() * covariance *
                                                scale.asDiagonal());
  if (correlation.info() != Eigen::Success) return kNone;
  return correlation.matrixL().solve(scale.cwiseProduct(b)).squaredNorm();
}

/// The covariance of some levels, which is that of independent ones and a matrix of low rank,
/// solved for the columns of `right` by the formula of Sherman, Morrison and Woodbury.
Eigen::MatrixXd SolveForLevels(const Eigen::VectorXd& own, const Eigen::MatrixXd& left,
                               const Eigen::MatrixXd& right_part, const Eigen::MatrixXd& right) {
  const int64_t n = left.rows();
  Eigen::MatrixXd both(2 * n, left.cols());
  for (int64_t k = 0; k < n; ++k) {
    // The product of the two is what counts; equal lengths are good for the condition.
    const double a = left.row(k).norm(), b = right_part.row(k).norm();
    const double ratio = a > 0 && b > 0 ? std::sqrt(b / a) : 1;
    both.row(k) = left.row(k) * ratio;
    both.row(n + k) = right_part.row(k) / ratio;
  }
  const Eigen::VectorXd inverse = own.cwiseInverse();
  const Eigen::MatrixXd scaled = both * inverse.asDiagonal();
  Eigen::MatrixXd middle = scaled * both.transpose();
  middle.topRightCorner(n, n).diagonal().array() += 1;
  middle.bottomLeftCorner(n, n).diagonal().array() += 1;
  return inverse.asDiagonal() * right -
         scaled.transpose() * middle.partialPivLu().solve(scaled * right);
}

}  // namespace

double WaldSquare(const GlmCovariance& covariance, const std::vector<int64_t>& places,
                  const std::vector<double>& estimates) {
  const GlmCovariance::Blocks& blocks = covariance.blocks();
  const int64_t begin = blocks.first_level, end = begin + blocks.num_levels;
  std::vector<int64_t> others, levels;
  std::vector<double> of_others, of_levels;
  const bool is_dense = places.size() <= kMostDense;
  for (size_t i = 0; i < places.size(); ++i) {
    const bool is_level = !is_dense && places[i] >= begin && places[i] < end;
    (is_level ? levels : others).push_back(places[i]);
    (is_level ? of_levels : of_others).push_back(estimates[i]);
  }
  const auto num_others = static_cast<int64_t>(others.size());
  Eigen::MatrixXd left_over(num_others, num_others);
  for (int64_t i = 0; i < num_others; ++i) {
    for (int64_t j = 0; j < num_others; ++j) left_over(i, j) = covariance(others[i], others[j]);
  }
  Eigen::VectorXd b = Eigen::Map<const Eigen::VectorXd>(of_others.data(), num_others);
  if (levels.empty()) return DenseSquare(left_over, b);
  const auto num_levels = static_cast<int64_t>(levels.size());
  const int64_t n = covariance.size() - blocks.num_levels;
  const Rows all_left(blocks.left.data(), n, blocks.num_levels);
  const Rows all_right(blocks.right.data(), n, blocks.num_levels);
  Eigen::MatrixXd left(n, num_levels), right(n, num_levels), crossed(num_levels, num_others);
  Eigen::VectorXd own(num_levels);
  for (int64_t l = 0; l < num_levels; ++l) {
    const int64_t level = levels[l] - begin;
    own[l] = blocks.own[level];
    left.col(l) = all_left.col(level);
    right.col(l) = all_right.col(level);
    for (int64_t i = 0; i < num_others; ++i) crossed(l, i) = covariance(levels[l], others[i]);
  }
  if (!(own.minCoeff() > 0)) return kNone;
  Eigen::MatrixXd wanted(num_levels, num_others + 1);
  wanted << crossed, Eigen::Map<const Eigen::VectorXd>(of_levels.data(), num_levels);
  const Eigen::MatrixXd solved = SolveForLevels(own, left, right, wanted);
  const double square = wanted.col(num_others).dot(solved.col(num_others));
  left_over -= crossed.transpose() * solved.leftCols(num_others);
  b -= crossed.transpose() * solved.col(num_others);
  const double rest = DenseSquare(left_over, b);
  return square >= 0 ? square + rest : kNone;
}

}  // namespace tenon
