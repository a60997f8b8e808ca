// SPDX-License-Identifier: Apache-2.0
#include "ops/array/index_tuples.h"

namespace tenon {

StatusOr<TupleSizes> SizesOfTuples(const Shape& indices, const Shape& shape) {
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > shape.rank()) {
    return InvalidArgument("index innermost dimension length must be <= params rank; saw: ", depth,
                           " vs. ", shape.rank());
  }
  const int k = static_cast<int>(depth);
  return TupleSizes{k, Product(indices.dims(), 0, indices.rank() - 1),
                    Product(shape.dims(), k, shape.rank())};
}

StatusOr<IndexTuples> ReadTuples(const Tensor& indices, const Shape& shape, std::string_view what) {
  TENON_ASSIGN_OR_RETURN(const TupleSizes sizes, SizesOfTuples(indices.shape(), shape));
  IndexTuples tuples;
  const int k = sizes.depth;
  tuples.width = sizes.width;
  tuples.count = sizes.count;
  if (k == 0) return tuples;
  TENON_ASSIGN_OR_RETURN(const IndexVector flat, ReadIndices(indices, "indices"));
  const DimVector strides = StridesOf(shape.dims().first(k));
  tuples.rows.assign(tuples.count, 0);
  for (int64_t i = 0; i < tuples.count; ++i) {
    const auto tuple = absl::MakeSpan(flat).subspan(i * k, k);
    for (int d = 0; d < k; ++d) {
      if (tuple[d] < 0 || tuple[d] >= shape.dim(d)) {
        return TupleOutOfRange(indices.shape(), i, Join(tuple, ", "), what, shape);
      }
      tuples.rows[i] += tuple[d] * strides[d];
    }
  }
  return tuples;
}

Status TupleOutOfRange(const Shape& indices, int64_t i, std::string_view tuple,
                       std::string_view what, const Shape& shape) {
  return InvalidArgument(ElementName("indices", indices.dims().first(indices.rank() - 1), i),
                         " = [", tuple, "] does not index into ", what, " ", shape);
}

Status CheckTensorScatter(const Shape& tensor, const Shape& indices, const Shape& updates) {
  if (tensor.rank() < 1 || updates.rank() < 1) {
    return InvalidArgument("tensor and updates must be of rank 1 or more, found shapes ", tensor,
                           " and ", updates);
  }
  if (indices.num_elements() == 0 && updates.num_elements() > 0) {
    return InvalidArgument("there are updates of shape ", updates, " without indices");
  }
  return OkStatus();
}

Status CheckUpdateTuples(const Shape& indices, const Shape& updates, const Shape& shape) {
  if (shape.rank() < 1) return InvalidArgument("Output must be at least 1-D, got shape: ", shape);
  if (shape.num_elements() == 0 && (indices.num_elements() > 0 || updates.num_elements() > 0)) {
    return InvalidArgument("Indices and updates specified for empty output shape ", shape,
                           ": indices has shape ", indices, ", updates has ", updates);
  }
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  // The tuples' places, and the slices that they name.
  const int batch = indices.rank() - 1;
  const int64_t depth = indices.dim(batch);
  const bool fits = depth <= shape.rank();
  const bool places =
      updates.rank() >= batch && updates.dims().first(batch) == indices.dims().first(batch);
  if (!places || !fits ||
      updates.dims().subspan(batch) != shape.dims().subspan(static_cast<size_t>(depth))) {
    const std::string wanted =
        fits ? PartialShape(SlicesShape(indices.dims(), shape.dims())).ToString()
             : StrCat("none, with tuples of ", depth);
    return InvalidArgument(
        "Dimensions [", places ? depth : 0, ",", places ? shape.rank() : batch, ") of ",
        places ? "input" : "indices", "[shape=", places ? shape : indices,
        "] must match dimensions [", places ? batch : 0, ",", places ? updates.rank() : batch,
        ") of updates[shape=", updates, "]: updates must have shape ", wanted, ", found ", updates);
  }
  return OkStatus();
}

StatusOr<IndexTuples> ReadUpdateTuples(const Tensor& indices, const Shape& updates,
                                       const Shape& shape) {
  TENON_RETURN_IF_ERROR(CheckUpdateTuples(indices.shape(), updates, shape));
  TENON_ASSIGN_OR_RETURN(IndexTuples tuples, ReadTuples(indices, shape, "shape"));
  // Nothing may be as many tuples as one likes.
  if (tuples.rows.empty() && updates.num_elements() > 0) tuples.rows.assign(tuples.count, 0);
  return tuples;
}

DimVector SlicesShape(absl::Span<const int64_t> indices, absl::Span<const int64_t> shape) {
  return Concat(indices.first(indices.size() - 1), shape.subspan(indices.back()));
}

}  // namespace tenon
