// SPDX-License-Identifier: Apache-2.0
#include "train/glm/model/arrow_matrix.h"

namespace tenon {

ArrowMatrix ArrowMatrix::Of(int64_t size, ColumnRange levels) {
  ArrowMatrix matrix;
  matrix.levels = levels;
  const int64_t num_others = size - levels.count;
  matrix.others.setZero(num_others, num_others);
  matrix.crossed.setZero(num_others, levels.count);
  matrix.own.setZero(levels.count);
  return matrix;
}

Eigen::VectorXd ArrowMatrix::OthersOf(const Eigen::VectorXd& vector) const {
  Eigen::VectorXd part(num_others());
  part << vector.head(levels.begin), vector.tail(num_others() - levels.begin);
  return part;
}

Eigen::VectorXd ArrowMatrix::LevelsOf(const Eigen::VectorXd& vector) const {
  return vector.segment(levels.begin, levels.count);
}

Eigen::VectorXd ArrowMatrix::Joined(const Eigen::VectorXd& of_others,
                                    const Eigen::VectorXd& of_levels) const {
  Eigen::VectorXd vector(size());
  vector << of_others.head(levels.begin), of_levels, of_others.tail(num_others() - levels.begin);
  return vector;
}

Eigen::VectorXd ArrowMatrix::Times(const Eigen::VectorXd& vector) const {
  const Eigen::VectorXd of_others = OthersOf(vector), of_levels = LevelsOf(vector);
  return Joined(others * of_others + crossed * of_levels,
                crossed.transpose() * of_others + own.cwiseProduct(of_levels));
}

void ArrowMatrix::Scale(const Eigen::VectorXd& factors) {
  const Eigen::VectorXd of_others = OthersOf(factors), of_levels = LevelsOf(factors);
  others.array().colwise() *= of_others.array();
  others.array().rowwise() *= of_others.transpose().array();
  crossed.array().colwise() *= of_others.array();
  crossed.array().rowwise() *= of_levels.transpose().array();
  own.array() *= of_levels.array().square();
}

Eigen::MatrixXd ArrowMatrix::Dense() const {
  if (levels.count == 0) return others;
  const int64_t before = levels.begin, count = levels.count, after = num_others() - before;
  Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(size(), size());
  dense.topLeftCorner(before, before) = others.topLeftCorner(before, before);
  dense.bottomRightCorner(after, after) = others.bottomRightCorner(after, after);
  dense.topRightCorner(before, after) = others.topRightCorner(before, after);
  dense.bottomLeftCorner(after, before) = others.bottomLeftCorner(after, before);
  dense.block(0, before, before, count) = crossed.topRows(before);
  dense.bottomRows(after).middleCols(before, count) = crossed.bottomRows(after);
  dense.middleRows(before, count).leftCols(before) = crossed.topRows(before).transpose();
  dense.middleRows(before, count).rightCols(after) = crossed.bottomRows(after).transpose();
  dense.block(before, before, count, count).diagonal() = own;
  return dense;
}

}  // namespace tenon
