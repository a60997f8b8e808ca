// SPDX-License-Identifier: Apache-2.0
#include "ops/array/index_tuples.h"

namespace tenon {

StatusOr<IndexTuples> ReadTuples(const Tensor& indices, const Shape& shape, std::string_view what) {
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > shape.rank()) {
    return InvalidArgument("index innermost dimension length must be <= ", what,
                           " rank; saw: ", depth, " vs. ", shape.rank());
  }
  IndexTuples tuples;
  const int k = static_cast<int>(depth);
  tuples.width = Product(shape.dims(), k, shape.rank());
  tuples.count = Product(indices.shape().dims(), 0, indices.rank() - 1);
  if (k == 0) return tuples;
  TENON_ASSIGN_OR_RETURN(const IndexVector flat, ReadIndices(indices, "indices"));
  const DimVector strides = StridesOf(shape.dims().first(k));
  tuples.rows.assign(tuples.count, 0);
  for (int64_t i = 0; i < tuples.count; ++i) {
    const auto tuple = absl::MakeSpan(flat).subspan(i * k, k);
    for (int d = 0; d < k; ++d) {
      if (tuple[d] < 0 || tuple[d] >= shape.dim(d)) {
        return InvalidArgument("indices[", i, "] = [", Join(tuple, ", "), "] does not index into ",
                               what, " shape ", shape);
      }
      tuples.rows[i] += tuple[d] * strides[d];
    }
  }
  return tuples;
}

StatusOr<IndexTuples> ReadUpdateTuples(const Tensor& indices, const Shape& updates,
                                       const Shape& shape, std::string_view what) {
  TENON_ASSIGN_OR_RETURN(IndexTuples tuples, ReadTuples(indices, shape, what));
  const DimVector wanted = SlicesShape(indices.shape().dims(), shape.dims());
  if (updates.dims() != absl::Span<const int64_t>(wanted)) {
    return InvalidArgument("updates must have shape ", PartialShape(wanted), ", found ", updates);
  }
  // Nothing may be as many tuples as one likes.
  if (tuples.rows.empty() && updates.num_elements() > 0) tuples.rows.assign(tuples.count, 0);
  return tuples;
}

DimVector SlicesShape(absl::Span<const int64_t> indices, absl::Span<const int64_t> shape) {
  return Concat(indices.first(indices.size() - 1), shape.subspan(indices.back()));
}

}  // namespace tenon
