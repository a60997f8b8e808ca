// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/arrow_cholesky.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tenon {
namespace {

/// Parts of a dependence below this, of columns of length 1, are rounding.
constexpr double kLeastPart = 1e-6;

Eigen::VectorXd InverseOf(const Eigen::VectorXd& own) {
  return (own.array() > 0).select(own.cwiseInverse(), 0);
}

Eigen::MatrixXd SchurComplement(const ArrowMatrix& gram, const Eigen::VectorXd& inverse_own) {
  Eigen::MatrixXd left = gram.others;
  if (gram.levels.count == 0) return left;
  const Eigen::MatrixXd roots = gram.crossed * inverse_own.cwiseSqrt().asDiagonal();
  left.selfadjointView<Eigen::Lower>().rankUpdate(roots, -1);
  left.triangularView<Eigen::StrictlyUpper>() = left.transpose();
  return left;
}

}  // namespace

ArrowCholesky::ArrowCholesky(const ArrowMatrix& gram)
    : gram_(gram),
      inverse_own_(InverseOf(gram.own)),
      shares_(gram.crossed * inverse_own_.asDiagonal()),
      cholesky_(SchurComplement(gram, inverse_own_), gram.others.diagonal()) {
  for (const int64_t other : cholesky_.aliased()) aliased_.push_back(gram.ColumnOf(other));
  for (int64_t l = 0; l < gram.levels.count; ++l) {
    if (inverse_own_[l] == 0) aliased_.push_back(gram.levels.begin + l);
  }
  std::sort(aliased_.begin(), aliased_.end());
}

int64_t ArrowCholesky::least_left_column() const {
  const int64_t other = cholesky_.least_left_column();
  return other < 0 ? -1 : gram_.ColumnOf(other);
}

Eigen::VectorXd ArrowCholesky::Solve(const Eigen::VectorXd& right) const {
  const Eigen::VectorXd of_levels = gram_.LevelsOf(right);
  const Eigen::VectorXd of_others = cholesky_.Solve(gram_.OthersOf(right) - shares_ * of_levels);
  return gram_.Joined(of_others,
                      inverse_own_.cwiseProduct(of_levels) - shares_.transpose() * of_others);
}

ColumnSum ArrowCholesky::Dependence(int64_t aliased) const {
  const auto [begin, count] = gram_.levels;
  ColumnSum sum = {aliased, {}};
  if (aliased >= begin && aliased < begin + count) return sum;
  const int64_t place = aliased < begin ? aliased : aliased - count;
  Eigen::VectorXd of_levels = shares_.row(place).transpose();
  for (const ColumnSum::Part& part : cholesky_.Dependence(place).parts) {
    sum.parts.push_back({gram_.ColumnOf(part.column), part.factor});
    of_levels -= part.factor * shares_.row(part.column).transpose();
  }
  const double length = std::sqrt(gram_.others(place, place));
  for (int64_t l = 0; l < count; ++l) {
    if (std::abs(of_levels[l]) * std::sqrt(gram_.own[l]) < kLeastPart * length) continue;
    sum.parts.push_back({begin + l, of_levels[l]});
  }
  return sum;
}

ArrowCovariance ArrowCholesky::Inverse() const {
  ArrowCovariance inverse;
  inverse.levels = gram_.levels;
  inverse.others = cholesky_.Inverse();
  inverse.crossed = -inverse.others * shares_;
  inverse.left = shares_;
  inverse.right = -inverse.crossed / 2;
  inverse.own = inverse_own_;
  return inverse;
}

}  // namespace tenon
