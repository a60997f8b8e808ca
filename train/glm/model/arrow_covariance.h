// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "train/glm/model/arrow_matrix.h"

namespace tenon {

/// The covariance of the columns of a design, in blocks. That of levels k and l is left_k' right_l
/// + right_k' left_l, and for k = l own_k more, where left_k is a column of `left`.
struct ArrowCovariance {
  ColumnRange levels = {};
  Eigen::MatrixXd others;       // of the other columns
  Eigen::MatrixXd crossed;      // of the others, by row, with the levels
  Eigen::MatrixXd left, right;  // a column a level, as many rows as there are others
  Eigen::VectorXd own;          // by level

  Eigen::VectorXd Diagonal() const;
  void Multiply(double factor);
  Eigen::MatrixXd Dense() const;
};

/// The inverse of an information matrix, on both sides of `squares` (White 1980), which is in the
/// same blocks.
ArrowCovariance Sandwich(const ArrowCovariance& inverse, const ArrowMatrix& squares);

}  // namespace tenon
