// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <source_location>
#include <vector>

#include "core/build/operand.h"

// Parts of tensors by their indices, with Python's meaning, as StridedSlice takes them:
//
//   x[0]                            x[0]
//   x[{-1, 2}]                      x[-1, 2]
//   x[{{1, 4}}]                     x[1:4]
//   x[{{}, {2, {}}}]                x[:, 2:]
//   x[{kEllipsis, {{}, {}, -1}}]    x[..., ::-1]
//   x[{{}, kNewAxis}]               x[:, newaxis]

namespace tenon {

/// All dimensions that the other indices do not speak of.
struct EllipsisIndex {};
inline constexpr EllipsisIndex kEllipsis;
/// A new dimension of size 1.
struct NewAxisIndex {};
inline constexpr NewAxisIndex kNewAxis;

/// What is taken of one dimension: a number, counted from the end when negative, which drops the
/// dimension; `{}`: all of it; `{begin, end}` or `{begin, end, step}`, where `{}` stands for the
/// edge. Numbers are integers or scalars of the graph.
class SliceIndex {
 public:
  enum class Kind { kElement, kRange, kEllipsis, kNewAxis };

  SliceIndex() : kind_(Kind::kRange), numbers_(2) {}
  SliceIndex(EllipsisIndex) : kind_(Kind::kEllipsis) {}  // NOLINT
  SliceIndex(NewAxisIndex) : kind_(Kind::kNewAxis) {}    // NOLINT
  template <typename T>
  requires std::is_integral_v<T> SliceIndex(T element)
      : kind_(Kind::kElement), numbers_{Input(element)} {}                                // NOLINT
  SliceIndex(const Output& element) : kind_(Kind::kElement), numbers_{Input(element)} {}  // NOLINT
  SliceIndex(std::initializer_list<Input> range)
      : kind_(Kind::kRange), numbers_(range) {}  // NOLINT

  Kind kind() const { return kind_; }
  /// The element, or the begin, end and perhaps step of the range.
  const std::vector<Input>& numbers() const { return numbers_; }

 private:
  Kind kind_;
  std::vector<Input> numbers_;
};

/// The indices of a slice, for the first dimensions on. Knows where in the program it stands.
class SliceIndices {
 public:
  using Location = std::source_location;

  template <typename T>
  requires std::is_integral_v<T> SliceIndices(T element, Location at = Location::current())
      : indices_{SliceIndex(element)}, at_(at) {}                         // NOLINT
  SliceIndices(const Output& element, Location at = Location::current())  // NOLINT
      : indices_{SliceIndex(element)}, at_(at) {}
  SliceIndices(std::initializer_list<SliceIndex> indices,
               Location at = Location::current())  // NOLINT
      : indices_(indices), at_(at) {}

  const std::vector<SliceIndex>& indices() const { return indices_; }
  const Location& location() const { return at_; }

 private:
  std::vector<SliceIndex> indices_;
  Location at_;
};

}  // namespace tenon
