// SPDX-License-Identifier: Apache-2.0
#include "train/glm/result/glm_covariance.h"

#include <cmath>
#include <utility>

#include "core/base/status.h"

namespace tenon {

GlmCovariance::GlmCovariance(Blocks blocks) : blocks_(std::move(blocks)) {
  num_others_ = std::llround(std::sqrt(static_cast<double>(blocks_.others.size())));
  const auto square = static_cast<size_t>(num_others_ * num_others_);
  const auto of_levels = static_cast<size_t>(num_others_ * blocks_.num_levels);
  TENON_CHECK(blocks_.others.size() == square && blocks_.crossed.size() == of_levels &&
              blocks_.left.size() == of_levels && blocks_.right.size() == of_levels &&
              blocks_.own.size() == static_cast<size_t>(blocks_.num_levels) &&
              blocks_.first_level >= 0 && blocks_.first_level <= num_others_);
  // Without levels every place is one of the others.
  if (blocks_.num_levels == 0) blocks_.first_level = num_others_;
}

double GlmCovariance::OfBlocks(int64_t i, int64_t j) const {
  const int64_t begin = blocks_.first_level, end = begin + blocks_.num_levels;
  const bool i_is_level = i >= begin && i < end, j_is_level = j >= begin && j < end;
  const auto other = [&](int64_t place) {
    return place < begin ? place : place - blocks_.num_levels;
  };
  if (!i_is_level && !j_is_level) return blocks_.others[other(i) * num_others_ + other(j)];
  if (!i_is_level) return blocks_.crossed[(j - begin) * num_others_ + other(i)];
  if (!j_is_level) return blocks_.crossed[(i - begin) * num_others_ + other(j)];
  const double *const left_i = blocks_.left.data() + (i - begin) * num_others_,
                      *const left_j = blocks_.left.data() + (j - begin) * num_others_;
  const double *const right_i = blocks_.right.data() + (i - begin) * num_others_,
                      *const right_j = blocks_.right.data() + (j - begin) * num_others_;
  double sum = i == j ? blocks_.own[i - begin] : 0;
  for (int64_t k = 0; k < num_others_; ++k) sum += left_i[k] * right_j[k] + right_i[k] * left_j[k];
  return sum;
}

}  // namespace tenon
