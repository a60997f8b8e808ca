// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace tenon {

/// The sizes of a window, or its steps, along the spatial dimensions: one number for all of them,
/// or one for each in braces.
class SpatialSizes {
 public:
  /// None: to be left to a default.
  SpatialSizes() = default;
  SpatialSizes(int64_t all) : sizes_{all} {}                             // NOLINT
  SpatialSizes(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}  // NOLINT

  bool exists() const { return !sizes_.empty(); }
  /// For that many dimensions; empty when they are for another number of them.
  std::vector<int64_t> For(int dimensions) const {
    if (sizes_.size() == 1) return std::vector<int64_t>(dimensions, sizes_[0]);
    return static_cast<int>(sizes_.size()) == dimensions ? sizes_ : std::vector<int64_t>();
  }

 private:
  std::vector<int64_t> sizes_;
};

}  // namespace tenon
