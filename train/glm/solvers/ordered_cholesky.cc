// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/ordered_cholesky.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

/// Parts of a dependence below this, of columns of length 1, are rounding.
constexpr double kLeastPart = 1e-6;
/// Columns that are factored together, by products of matrices.
constexpr int64_t kBlock = 64;

}  // namespace

OrderedCholesky::OrderedCholesky(const Eigen::MatrixXd& gram, const Eigen::VectorXd& squares,
                                 double tolerance)
    : size_(gram.rows()), scale_(gram.rows()) {
  for (int64_t i = 0; i < size_; ++i) scale_[i] = squares[i] > 0 ? std::sqrt(squares[i]) : 1;
  const Eigen::VectorXd inverse_scale = scale_.cwiseInverse();
  const Eigen::MatrixXd scaled = inverse_scale.asDiagonal() * gram * inverse_scale.asDiagonal();
  // The blocked factorisation is many times as fast, and is right where no column is aliased.
  const Eigen::LLT<Eigen::MatrixXd> whole(scaled);
  if (whole.info() == Eigen::Success) {
    const Eigen::VectorXd left = whole.matrixLLT().diagonal().cwiseAbs2();
    if (size_ == 0 || left.minCoeff() >= tolerance) {
      factor_ = whole.matrixL();
      for (int64_t i = 0; i < size_; ++i) kept_.push_back(i);
      if (size_ > 0) least_left_ = left.minCoeff(&least_left_column_);
      return;
    }
  }
  factor_.setZero(size_, size_);
  rest_.setZero(size_, size_);
  for (int64_t begin = 0; begin < size_; begin += kBlock) {
    FactorBlock(scaled, begin, std::min(begin + kBlock, size_), tolerance);
  }
  factor_.conservativeResize(rank(), rank());
}

void OrderedCholesky::FactorBlock(const Eigen::MatrixXd& scaled, int64_t begin, int64_t end,
                                  double tolerance) {
  const int64_t count = end - begin, before = rank();
  // The rows by the columns that were kept before this block, and what these leave of the block.
  Eigen::MatrixXd rows(before, count);
  for (int64_t k = 0; k < before; ++k) {
    rows.row(k) = scaled.col(kept_[k]).segment(begin, count).transpose();
  }
  factor_.topLeftCorner(before, before).triangularView<Eigen::Lower>().solveInPlace(rows);
  Eigen::MatrixXd left = scaled.block(begin, begin, count, count);
  left.noalias() -= rows.transpose() * rows;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t own = rank() - before;
    Eigen::VectorXd row(own);
    for (int64_t k = 0; k < own; ++k) row[k] = left(i, kept_[before + k] - begin);
    factor_.block(before, before, own, own).triangularView<Eigen::Lower>().solveInPlace(row);
    const double square = left(i, i) - row.squaredNorm();
    const bool is_kept = square >= tolerance;
    Eigen::MatrixXd& to = is_kept ? factor_ : rest_;
    const int64_t place = is_kept ? rank() : static_cast<int64_t>(aliased_.size());
    to.row(place).head(before) = rows.col(i).transpose();
    to.row(place).segment(before, own) = row.transpose();
    if (!is_kept) {
      aliased_.push_back(begin + i);
      continue;
    }
    factor_(place, place) = std::sqrt(square);
    kept_.push_back(begin + i);
    if (least_left_column_ < 0 || square < least_left_) {
      least_left_ = square;
      least_left_column_ = begin + i;
    }
  }
}

Eigen::VectorXd OrderedCholesky::Solve(const Eigen::VectorXd& right) const {
  Eigen::VectorXd own(rank());
  for (int64_t k = 0; k < rank(); ++k) own[k] = right[kept_[k]] / scale_[kept_[k]];
  const auto lower = factor_.triangularView<Eigen::Lower>();
  lower.solveInPlace(own);
  lower.transpose().solveInPlace(own);
  Eigen::VectorXd solution = Eigen::VectorXd::Zero(size_);
  for (int64_t k = 0; k < rank(); ++k) solution[kept_[k]] = own[k] / scale_[kept_[k]];
  return solution;
}

Eigen::MatrixXd OrderedCholesky::Inverse() const {
  Eigen::MatrixXd own = Eigen::MatrixXd::Identity(rank(), rank());
  const auto lower = factor_.triangularView<Eigen::Lower>();
  lower.solveInPlace(own);
  own = (own.transpose() * own).eval();
  if (rank() == size_) {
    const Eigen::VectorXd inverse_scale = scale_.cwiseInverse();
    return inverse_scale.asDiagonal() * own * inverse_scale.asDiagonal();
  }
  Eigen::MatrixXd inverse = Eigen::MatrixXd::Zero(size_, size_);
  for (int64_t j = 0; j < rank(); ++j) {
    for (int64_t i = 0; i < rank(); ++i) {
      inverse(kept_[i], kept_[j]) = own(i, j) / (scale_[kept_[i]] * scale_[kept_[j]]);
    }
  }
  return inverse;
}

ColumnSum OrderedCholesky::Dependence(int64_t aliased) const {
  ColumnSum sum = {aliased, {}};
  const auto place = std::lower_bound(aliased_.begin(), aliased_.end(), aliased);
  const auto before = std::lower_bound(kept_.begin(), kept_.end(), aliased) - kept_.begin();
  Eigen::VectorXd parts = rest_.row(place - aliased_.begin()).head(before).transpose();
  factor_.topLeftCorner(before, before)
      .triangularView<Eigen::Lower>()
      .transpose()
      .solveInPlace(parts);
  for (int64_t k = 0; k < before; ++k) {
    if (std::abs(parts[k]) < kLeastPart) continue;
    sum.parts.push_back({kept_[k], parts[k] * scale_[aliased] / scale_[kept_[k]]});
  }
  return sum;
}

}  // namespace tenon
