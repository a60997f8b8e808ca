// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "core/base/status.h"
#include "core/memory/counted_memory.h"
#include "core/op/bound_arguments.h"
#include "core/op/kernel.h"
#include "core/op/shape_inference.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

// Reading the small integer tensors that steer an op: shapes, axes, sizes. They come from outside,
// so each function checks dtype, rank and range, and its message names the argument. With them the
// checks of inputs that many ops make.

namespace tenon {

/// What ReadIntegers gives, of a tensor that may be large, as indices are: their memory counts.
using IndexVector = absl::InlinedVector<int64_t, 4, CountedAllocator<int64_t>>;
StatusOr<IndexVector> ReadIndices(const Tensor& t, std::string_view what);
/// "indices[1,2]" for element `i` of a tensor of those dimensions.
std::string ElementName(std::string_view what, absl::Span<const int64_t> dims, int64_t i);
/// What ReadIndices gives; each must be in [0, limit): "indices[1,2] = 5 is not in [0, 2)".
StatusOr<IndexVector> ReadIndices(const Tensor& t, std::string_view what, int64_t limit);

/// `axis` as an index into `rank` dimensions, negative ones counted from the end; InvalidArgument
/// "Expected axis in the range [-2, 2), but got 5: axis = 5 is out of range".
StatusOr<int> NormalizeAxis(int64_t axis, int rank, std::string_view what);
/// The axis that a tensor of one integer holds.
StatusOr<int> ReadAxis(const Tensor& t, int rank, std::string_view what);
/// For shape functions: the axis that input `i` holds, nothing when it is not known in building or
/// `rank` is negative.
StatusOr<std::optional<int>> ReadAxis(const ShapeContext& c, int i, int rank,
                                      std::string_view what);
/// The axis that the attribute `attr` is; nothing when `rank` is negative.
StatusOr<std::optional<int>> AxisAttr(const ShapeContext& c, std::string_view attr, int rank);

/// InvalidArgument "axis = 5 is not in [0, 2)" for such a value; `what` are the parts of its name.
template <typename... What>
Status NotInRange(int64_t value, int64_t limit, const What&... what) {
  return InvalidArgument(what..., " = ", value, " is not in [0, ", limit, ")");
}
/// InvalidArgument unless inputs `first`, `first` + 1, ... are scalars, as many as there are names.
Status CheckScalars(const KernelContext& ctx, int first, absl::Span<const std::string_view> names);
/// InvalidArgument unless all inputs have the same shape.
Status CheckSameShape(const KernelContext& ctx);
/// InvalidArgument unless the shape of `t` begins with that of `prefix`.
Status CheckPrefix(const Tensor& t, std::string_view what, const Tensor& prefix,
                   std::string_view prefix_what);

/// The product of dims [begin, end), or of all.
int64_t Product(absl::Span<const int64_t> dims, int begin, int end);
inline int64_t Product(absl::Span<const int64_t> dims) {
  return Product(dims, 0, static_cast<int>(dims.size()));
}
/// The shape as a tensor of int32 or int64; InvalidArgument when a dimension does not fit.
StatusOr<Tensor> ShapeTensor(const Shape& shape, DType type);

/// Makes `values` the elements of `out`, of int32, which they fit, or int64.
void WriteIntegers(absl::Span<const int64_t> values, Tensor* out);

/// Row-major strides of a shape, in elements.
DimVector StridesOf(absl::Span<const int64_t> dims);

}  // namespace tenon
