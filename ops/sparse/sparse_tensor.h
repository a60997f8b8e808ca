// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "core/memory/counted_memory.h"
#include "core/op/bound_arguments.h"
#include "core/op/kernel.h"
#include "core/op/shape_inference.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// A sparse tensor as ops get it, in three inputs: indices [n, rank], values [n] and shape [rank].
/// Only these shapes and the signs of the sizes have been checked; the checks below are for the ops
/// that need more.
struct SparseTensor {
  /// Reads inputs `first`, `first` + 1 and `first` + 2. InvalidArgument when their shapes do not
  /// fit each other, and for a negative size.
  static StatusOr<SparseTensor> Read(const KernelContext& ctx, int first = 0);
  /// The same of tensors.
  static StatusOr<SparseTensor> Of(const Tensor& indices, const Tensor& values,
                                   const Tensor& shape);
  /// The same without values.
  static StatusOr<SparseTensor> OfIndices(const Tensor& indices, const Tensor& shape);

  int64_t size() const { return input.dim(0); }
  int rank() const { return static_cast<int>(dims.size()); }
  /// Where entry `i` is.
  absl::Span<const int64_t> index(int64_t i) const { return indices.subspan(i * rank(), rank()); }
  /// dims as the shape of a dense tensor; the errors of Shape::Create.
  StatusOr<Shape> DenseShape() const { return Shape::Create(dims); }

  /// InvalidArgument "indices[1] = [0,3] is out of bounds: need 0 <= index < [2,3]".
  Status CheckBounds() const;
  /// The same, or "is out of order", or "is repeated".
  Status CheckSorted() const;

  Tensor values;
  DimVector dims;
  absl::Span<const int64_t> indices;
  /// What `indices` points to: the input, or if that is of int32 a copy.
  Tensor input;
  CountedVector<int64_t> widened;
};

template <>
struct InputReader<SparseTensor> : ReadsInputs<SparseTensor::Read, 3> {};

/// How two indices of one rank follow each other in row-major order.
std::strong_ordering CompareIndices(absl::Span<const int64_t> a, absl::Span<const int64_t> b);

/// The numbers of the indices, `rank` to each, in row-major order; equal ones as they come. 0, 1,
/// 2, ... when they are in order.
CountedVector<int64_t> RowMajorOrder(absl::Span<const int64_t> indices, int64_t count, int rank);

/// Entries of a sparse tensor that is made: where they are, and which element of other values
/// theirs is.
class SparseEntries {
 public:
  explicit SparseEntries(int rank) : rank_(rank) {}

  void Add(absl::Span<const int64_t> index, int64_t from = 0) {
    indices_.insert(indices_.end(), index.begin(), index.end());
    from_.push_back(from);
  }
  int64_t size() const { return static_cast<int64_t>(from_.size()); }
  absl::Span<const int64_t> indices() const { return indices_; }
  /// The index of the entry that was added last.
  absl::Span<int64_t> last_index() { return absl::MakeSpan(indices_).last(rank_); }
  absl::Span<const int64_t> last_index() const { return absl::MakeSpan(indices_).last(rank_); }

  Status WriteIndices(KernelContext& ctx, int output) const;
  /// Where `from` is negative, the element is number ~from of `others`.
  Status WriteValues(KernelContext& ctx, int output, const Tensor& values,
                     const Tensor& others = Tensor()) const;

 private:
  const int rank_;
  CountedVector<int64_t> indices_;
  CountedVector<int64_t> from_;
};

/// `values` as a vector of int64.
Status WriteVector(KernelContext& ctx, int output, absl::Span<const int64_t> values);

/// For shape functions: checks the ranks of inputs `first` .. `first` + 2, a sparse tensor, and
/// gives its dense shape as far as it can be told. Kernels check whether their sizes fit each
/// other, as in TensorFlow: a graph may hold a node that is wrong and never runs.
StatusOr<PartialShape> SparseInputShape(const ShapeContext& c, int first = 0);
/// Outputs `first` .. `first` + 2 are a sparse tensor of that rank with so many entries.
void SetSparseOutputs(ShapeContext& c, int first, int64_t entries, int64_t rank);

}  // namespace tenon
