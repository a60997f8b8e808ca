// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "train/glm/formula/design_columns.h"

namespace tenon {

/// A symmetric matrix of sums over rows by the columns of a design, as an arrowhead matrix: the
/// levels of one factor have no products with each other, so that a diagonal is all that is kept of
/// their block.
struct ArrowMatrix {
  ColumnRange levels = {};  // the columns of that factor; none: the matrix is dense
  Eigen::MatrixXd others;   // of the other columns
  Eigen::MatrixXd crossed;  // of the others, by row, with the levels
  Eigen::VectorXd own;      // of the levels

  /// Zeros.
  static ArrowMatrix Of(int64_t size, ColumnRange levels);

  int64_t num_others() const { return others.rows(); }
  int64_t size() const { return num_others() + levels.count; }
  /// The column that is at a place among the others.
  int64_t ColumnOf(int64_t other) const {
    return other < levels.begin ? other : other + levels.count;
  }

  /// The entries of a vector by column that belong to the others, and the way back.
  Eigen::VectorXd OthersOf(const Eigen::VectorXd& vector) const;
  Eigen::VectorXd LevelsOf(const Eigen::VectorXd& vector) const;
  Eigen::VectorXd Joined(const Eigen::VectorXd& of_others, const Eigen::VectorXd& of_levels) const;

  Eigen::VectorXd Diagonal() const { return Joined(others.diagonal(), own); }
  Eigen::VectorXd Times(const Eigen::VectorXd& vector) const;
  /// Multiplies each entry by the factors of its row and its column.
  void Scale(const Eigen::VectorXd& factors);
  Eigen::MatrixXd Dense() const;
};

}  // namespace tenon
