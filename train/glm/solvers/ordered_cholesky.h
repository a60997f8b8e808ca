// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

namespace tenon {

/// A column as a sum of others.
struct ColumnSum {
  struct Part {
    int64_t column;
    double factor;
  };
  int64_t column;
  std::vector<Part> parts;
};

/// The Cholesky factor of a Gram matrix X'WX, column by column in their order. A column of which
/// less than `tolerance` of its square is left, when those before it are taken out, is aliased
/// with them: it has no coefficient, as in R, whose glm() finds the same ones by a QR
/// decomposition.
class OrderedCholesky {
 public:
  /// A Gram matrix squares the condition: what is left below this cannot be told from rounding.
  static constexpr double kTolerance = 1e-9;

  /// `gram` is symmetric and positive semidefinite; only its lower triangle is read. Columns of
  /// zeros are aliased.
  explicit OrderedCholesky(const Eigen::MatrixXd& gram, double tolerance = kTolerance)
      : OrderedCholesky(gram, gram.diagonal(), tolerance) {}
  /// The same where `gram` is what other columns, which were taken out, left of columns with these
  /// squares.
  OrderedCholesky(const Eigen::MatrixXd& gram, const Eigen::VectorXd& squares,
                  double tolerance = kTolerance);

  int64_t rank() const { return static_cast<int64_t>(kept_.size()); }
  /// The columns that are not aliased, and those that are, in order.
  const std::vector<int64_t>& kept() const { return kept_; }
  const std::vector<int64_t>& aliased() const { return aliased_; }
  /// The least part of its square that a kept column has left: the inverse of the largest variance
  /// inflation by the columns before it. 1 without columns.
  double least_left() const { return least_left_; }
  /// That column; -1 without columns.
  int64_t least_left_column() const { return least_left_column_; }

  /// The x with gram x = right where aliased columns count for nothing: 0 there.
  Eigen::VectorXd Solve(const Eigen::VectorXd& right) const;
  /// The inverse over the kept columns, with zeros in the rows and columns of the others.
  Eigen::MatrixXd Inverse() const;
  /// The sum of columns kept before it that an aliased column is; parts that are nothing but
  /// rounding are left out.
  ColumnSum Dependence(int64_t aliased) const;

 private:
  void FactorBlock(const Eigen::MatrixXd& scaled, int64_t begin, int64_t end, double tolerance);

  const int64_t size_;
  Eigen::VectorXd scale_;   // the square roots of the squares; 1 for zeros
  Eigen::MatrixXd factor_;  // of the kept columns, each scaled to a square of 1
  Eigen::MatrixXd rest_;    // the rows that aliased columns would have
  std::vector<int64_t> kept_, aliased_;
  double least_left_ = 1;
  int64_t least_left_column_ = -1;
};

}  // namespace tenon
