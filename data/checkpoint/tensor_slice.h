// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// A rectangular part of a tensor: per dimension where it starts and how long it is, or all of it.
class TensorSlice {
 public:
  static constexpr int64_t kFull = -1;
  struct Extent {
    int64_t start = 0;
    int64_t length = kFull;
    friend bool operator==(const Extent&, const Extent&) = default;
  };

  TensorSlice() = default;
  explicit TensorSlice(std::vector<Extent> extents) : extents_(std::move(extents)) {}
  /// All of a tensor of that rank.
  static TensorSlice Full(int rank) { return TensorSlice(std::vector<Extent>(rank)); }
  /// Reads "start,length" or "-" per dimension, joined with ":"; "" is a scalar's slice.
  static StatusOr<TensorSlice> Parse(std::string_view text);

  int rank() const { return static_cast<int>(extents_.size()); }
  const Extent& extent(int i) const { return extents_[i]; }
  /// True when it is the whole of a tensor of that shape.
  bool IsFull(const Shape& shape) const;

  /// This slice of `shape` with every start and length explicit; InvalidArgument when it is not
  /// inside the shape.
  StatusOr<TensorSlice> Resolve(const Shape& shape) const;
  /// The shape of a resolved slice.
  Shape shape() const;
  /// What two resolved slices have in common, or nothing.
  std::optional<TensorSlice> Intersect(const TensorSlice& other) const;

  std::string ToString() const;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;

 private:
  std::vector<Extent> extents_;
};

/// A partitioned variable's part, as SaveV2 and RestoreV2 name it: "20 10 0,5:-" is rows 0 to 4 of
/// a [20,10] tensor.
struct ShapeAndSlice {
  Shape full_shape;
  TensorSlice slice;
};
/// InvalidArgument when `text` is not of that form, or the slice is not inside the shape.
StatusOr<ShapeAndSlice> ParseShapeAndSlice(std::string_view text);

/// Copies the elements of `part` (resolved, in the coordinates of the whole) from a tensor that
/// holds `from_slice` of the whole to one that holds `to_slice`. Both slices must contain `part`.
void CopySlice(const TensorSlice& part, const Tensor& from, const TensorSlice& from_slice,
               Tensor* to, const TensorSlice& to_slice);

}  // namespace tenon
