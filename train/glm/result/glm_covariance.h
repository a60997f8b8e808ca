// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

/// The covariance of the estimates of a model, in their order. That of thousands of levels of one
/// factor would be large: it is kept as the blocks from which its entries follow. A value, which is
/// copied and kept as such.
class GlmCovariance {
 public:
  /// With n estimates beside the levels, `left` and `right` have n numbers a level; levels k and l
  /// have the covariance left_k' right_l + right_k' left_l, and for k = l own_k more.
  struct Blocks {
    int64_t first_level = 0, num_levels = 0;  // their places among the estimates
    std::vector<double> others;               // n x n, of the other estimates
    std::vector<double> crossed;              // by level, with each of the others
    std::vector<double> left, right, own;     // by level

    bool operator==(const Blocks& other) const = default;
  };

  /// That of no estimates.
  GlmCovariance() = default;
  /// REQUIRES: the sizes agree.
  explicit GlmCovariance(Blocks blocks);

  const Blocks& blocks() const { return blocks_; }
  bool empty() const { return size() == 0; }
  int64_t size() const { return num_others_ + blocks_.num_levels; }
  /// The covariance of two estimates.
  double operator()(int64_t i, int64_t j) const {
    if (i < blocks_.first_level && j < blocks_.first_level) {
      return blocks_.others[i * num_others_ + j];
    }
    return OfBlocks(i, j);
  }
  bool operator==(const GlmCovariance& other) const = default;

 private:
  double OfBlocks(int64_t i, int64_t j) const;

  Blocks blocks_;
  int64_t num_others_ = 0;
};

}  // namespace tenon
