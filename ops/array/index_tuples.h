// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/arguments.h"

namespace tenon {

/// Which row each of several index tuples names in a tensor seen as rows of `width` elements.
struct IndexTuples {
  int64_t count = 0;
  int64_t width = 1;
  IndexVector rows;  // empty for tuples of length 0, of which there may be any number: row 0
};

/// How many there are, of how many numbers, and how many elements each names.
struct TupleSizes {
  int depth = 0;
  int64_t count = 0, width = 1;
};
/// The sizes of the tuples that `indices`, a tensor of this shape, has along its last dimension,
/// into the leading dimensions of `shape`; InvalidArgument for tuples that are longer than it has.
StatusOr<TupleSizes> SizesOfTuples(const Shape& indices, const Shape& shape);
/// The error of tuple number `i`, whose numbers `tuple` lists.
Status TupleOutOfRange(const Shape& indices, int64_t i, std::string_view tuple,
                       std::string_view what, const Shape& shape);
/// InvalidArgument unless updates of what tuples name have the shape that ReadUpdateTuples wants.
Status CheckUpdateTuples(const Shape& indices, const Shape& updates, const Shape& shape);

/// InvalidArgument unless a tensor may be changed by such updates: both have dimensions, and there
/// are indices where there are updates.
Status CheckTensorScatter(const Shape& tensor, const Shape& indices, const Shape& updates);

/// Reads `indices`, whose last dimension is a tuple into the leading dimensions of `shape`.
/// InvalidArgument, where `what` names that shape, for a tuple out of range.
StatusOr<IndexTuples> ReadTuples(const Tensor& indices, const Shape& shape, std::string_view what);

/// The same for updates of what the tuples name, which must have the shape indices.shape[:-1] +
/// shape[k:]; then every tuple has its row.
StatusOr<IndexTuples> ReadUpdateTuples(const Tensor& indices, const Shape& updates,
                                       const Shape& shape);

/// The shape of what such tuples stand for: indices[:-1] + shape[k:].
DimVector SlicesShape(absl::Span<const int64_t> indices, absl::Span<const int64_t> shape);

}  // namespace tenon
