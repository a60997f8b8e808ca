// SPDX-License-Identifier: Apache-2.0
#include "train/glm/model/arrow_covariance.h"

namespace tenon {

Eigen::VectorXd ArrowCovariance::Diagonal() const {
  const ArrowMatrix blocks = {levels, others, {}, {}};
  return blocks.Joined(others.diagonal(),
                       own + 2 * left.cwiseProduct(right).colwise().sum().transpose());
}

void ArrowCovariance::Multiply(double factor) {
  others *= factor;
  crossed *= factor;
  right *= factor;
  own *= factor;
}

Eigen::MatrixXd ArrowCovariance::Dense() const {
  Eigen::MatrixXd dense = ArrowMatrix{levels, others, crossed, own}.Dense();
  const Eigen::MatrixXd of_levels = left.transpose() * right;
  dense.block(levels.begin, levels.begin, levels.count, levels.count) +=
      of_levels + of_levels.transpose();
  return dense;
}

ArrowCovariance Sandwich(const ArrowCovariance& inverse, const ArrowMatrix& squares) {
  // The squares as what is left of the others, when levels are taken out, has them.
  const Eigen::MatrixXd& shares = inverse.left;
  const Eigen::MatrixXd crossed = squares.crossed - shares * squares.own.asDiagonal();
  const Eigen::MatrixXd once = shares * squares.crossed.transpose();
  const Eigen::MatrixXd middle = squares.others - once - once.transpose() +
                                 shares * squares.own.asDiagonal() * shares.transpose();
  const Eigen::MatrixXd with_levels = inverse.others * crossed * inverse.own.asDiagonal();
  ArrowCovariance covariance;
  covariance.levels = inverse.levels;
  covariance.others = inverse.others * middle * inverse.others;
  const Eigen::MatrixXd seen = covariance.others * shares;
  covariance.crossed = with_levels - seen;
  covariance.left = shares;
  covariance.right = seen / 2 - with_levels;
  covariance.own = squares.own.cwiseProduct(inverse.own.cwiseAbs2());
  return covariance;
}

}  // namespace tenon
