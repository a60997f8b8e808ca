// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "train/glm/model/arrow_covariance.h"
#include "train/glm/model/arrow_matrix.h"
#include "train/glm/solvers/ordered_cholesky.h"

namespace tenon {

/// The Cholesky factor of a Gram matrix X'WX with the levels eliminated first, and the other
/// columns after them in their order. Without levels that is OrderedCholesky. What is aliased with
/// the levels is one of the other columns then, where R's choice is a level if that comes later.
class ArrowCholesky {
 public:
  /// `gram` is positive semidefinite.
  explicit ArrowCholesky(const ArrowMatrix& gram);

  int64_t rank() const { return gram_.size() - static_cast<int64_t>(aliased_.size()); }
  /// The columns that are aliased, in order. Levels of zeros are.
  const std::vector<int64_t>& aliased() const { return aliased_; }
  /// The least part that one of the other columns has left of its square, and which one, as
  /// OrderedCholesky has them.
  double least_left() const { return cholesky_.least_left(); }
  int64_t least_left_column() const;

  /// The x with gram x = right where aliased columns count for nothing: 0 there.
  Eigen::VectorXd Solve(const Eigen::VectorXd& right) const;
  /// The sum of columns that an aliased column is; parts that are nothing but rounding are left
  /// out.
  ColumnSum Dependence(int64_t aliased) const;
  /// The inverse, with zeros in the rows and columns of aliased ones.
  ArrowCovariance Inverse() const;

 private:
  ArrowMatrix gram_;
  Eigen::VectorXd inverse_own_;  // 0 for zeros
  Eigen::MatrixXd shares_;       // crossed x 1 / own: each level as the others' rows see it
  OrderedCholesky cholesky_;     // of the others without what the levels explain
  std::vector<int64_t> aliased_;
};

}  // namespace tenon
