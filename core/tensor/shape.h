// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/memory/counted_memory.h"

namespace tenon {

/// The dimensions of a shape. Lists that do not fit inline count as memory of tensors: a tensor may
/// have no elements and kMaxRank dimensions.
using DimVector = absl::InlinedVector<int64_t, 4, TalliedAllocator<int64_t>>;

/// One list of dimensions after the other.
DimVector Concat(absl::Span<const int64_t> a, absl::Span<const int64_t> b);

/// The shape of a tensor: a list of dimensions, each >= 0, at most kMaxRank of them, whose product
/// fits in an int64_t. Rank 0 is a scalar. A value type; safe to read from several threads.
class Shape {
 public:
  static constexpr int kMaxRank = 254;

  Shape() = default;
  Shape(const Shape& other)
      : num_elements_(other.num_elements_), rank_(other.rank_), dims_(other.dims_) {
    if (!is_inline()) CopyLarge(other.dims_.large);
  }
  Shape(Shape&& other) noexcept
      : num_elements_(std::exchange(other.num_elements_, 1)),
        rank_(std::exchange(other.rank_, 0)),
        dims_(other.dims_) {}
  Shape& operator=(const Shape& other) {
    if (this != &other) *this = Shape(other);
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    if (this == &other) return *this;
    if (!is_inline()) FreeLarge();
    num_elements_ = std::exchange(other.num_elements_, 1);
    rank_ = std::exchange(other.rank_, 0);
    dims_ = other.dims_;
    return *this;
  }
  ~Shape() {
    if (!is_inline()) FreeLarge();
  }
  /// For dimensions that the program itself chose; they must be valid. One whose product does not
  /// fit has INT64_MAX elements, which no allocator gives.
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(absl::Span<const int64_t> dims);

  /// For dimensions from outside: InvalidArgument when one is negative, there are too many, or the
  /// number of elements overflows.
  static StatusOr<Shape> Create(absl::Span<const int64_t> dims);

  int rank() const { return rank_; }
  bool IsScalar() const { return rank_ == 0; }
  int64_t dim(int i) const { return data()[i]; }
  absl::Span<const int64_t> dims() const { return {data(), static_cast<size_t>(rank_)}; }
  int64_t num_elements() const { return num_elements_; }

  /// This shape with dimension `i` set to `size`, removed, or with `size` inserted before it. For
  /// sizes that make a valid shape: use Create where that is not known.
  Shape WithDim(int i, int64_t size) const;
  Shape WithoutDim(int i) const;
  Shape WithInsertedDim(int i, int64_t size) const;

  /// "[2,3]"; "[]" for a scalar.
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims() == b.dims(); }

 private:
  /// A shape of up to so many dimensions has them in itself and is moved by copying some words,
  /// which is done for every value of every step.
  static constexpr int kInline = 4;

  bool is_inline() const { return rank_ <= kInline; }
  const int64_t* data() const { return is_inline() ? dims_.own : dims_.large; }
  void CopyLarge(const int64_t* dims);
  void FreeLarge();

  int64_t num_elements_ = 1;
  int32_t rank_ = 0;
  union Dims {
    int64_t own[kInline];
    int64_t* large;  // counts as memory of tensors, as a DimVector does
  } dims_ = {};
};

/// The sum and the product of two sizes >= 0; InvalidArgument naming both when it is more than an
/// int64_t holds. For all arithmetic on dimensions that come from outside.
StatusOr<int64_t> AddSizes(int64_t a, int64_t b);
StatusOr<int64_t> MultiplySizes(int64_t a, int64_t b);

/// A shape of which something may be unknown: the rank, or single dimensions (kUnknownDim).
class PartialShape {
 public:
  static constexpr int64_t kUnknownDim = -1;

  /// Unknown rank.
  PartialShape() = default;
  PartialShape(std::initializer_list<int64_t> dims) : dims_(DimVector(dims)) {}
  explicit PartialShape(absl::Span<const int64_t> dims)
      : dims_(DimVector(dims.begin(), dims.end())) {}
  PartialShape(const Shape& shape)  // NOLINT: every shape is a partial shape
      : dims_(DimVector(shape.dims().begin(), shape.dims().end())) {}

  /// For dimensions from outside: each >= -1, at most Shape::kMaxRank.
  static StatusOr<PartialShape> Create(absl::Span<const int64_t> dims);
  /// A shape of unknown dimensions, and of unknown rank when `rank` is negative.
  static PartialShape OfRank(int rank);

  bool rank_known() const { return dims_.has_value(); }
  /// -1 when unknown.
  int rank() const { return dims_ ? static_cast<int>(dims_->size()) : -1; }
  /// Dimension `i`, or kUnknownDim (also when the rank is unknown).
  int64_t dim(int i) const { return dims_ ? (*dims_)[i] : kUnknownDim; }
  /// REQUIRES: rank_known().
  absl::Span<const int64_t> dims() const { return *dims_; }
  bool IsFullyKnown() const;
  /// This shape with dimension `i` set to `size`, removed, or with `size` inserted before it. Where
  /// `i` is not known, all dimensions are unknown; of unknown rank it stays.
  PartialShape WithDim(std::optional<int> i, int64_t size) const;
  PartialShape WithoutDim(std::optional<int> i) const;
  PartialShape WithInsertedDim(std::optional<int> i, int64_t size) const;
  /// Dimensions [begin, end), to the last without `end`; unknown when the rank is. They must be
  /// there.
  PartialShape Part(int begin, std::optional<int> end = std::nullopt) const;
  /// These dimensions and then those of `other`; unknown when either rank is.
  PartialShape ConcatWith(const PartialShape& other) const;
  /// REQUIRES: IsFullyKnown(). Valid when this came from Create.
  Shape ToShape() const { return Shape(dims()); }
  std::optional<int64_t> num_elements() const;

  /// True when some full shape satisfies both.
  bool IsCompatibleWith(const PartialShape& other) const;
  /// What is known from both; InvalidArgument when they contradict each other.
  StatusOr<PartialShape> MergeWith(const PartialShape& other) const;
  /// What is common to both: dimensions that differ become unknown, ranks that differ an unknown
  /// rank.
  PartialShape RelaxedWith(const PartialShape& other) const;

  /// "[2,?]"; "<unknown>" for an unknown rank.
  std::string ToString() const;

  friend bool operator==(const PartialShape& a, const PartialShape& b) {
    return a.dims_ == b.dims_;
  }

 private:
  std::optional<DimVector> dims_;
};

}  // namespace tenon
