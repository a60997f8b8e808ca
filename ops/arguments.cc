// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"

#include <limits>

namespace tenon {

std::string ElementName(std::string_view what, absl::Span<const int64_t> dims, int64_t i) {
  if (dims.empty()) return std::string(what);
  DimVector place;
  for (const int64_t stride : StridesOf(dims)) {
    place.push_back(i / stride);
    i %= stride;
  }
  return StrCat(what, "[", Join(place, ","), "]");
}

StatusOr<IndexVector> ReadIndices(const Tensor& t, std::string_view what) {
  IndexVector values(t.num_elements());
  TENON_RETURN_IF_ERROR(WidenIntegers(t, what, values.data()));
  return values;
}

StatusOr<IndexVector> ReadIndices(const Tensor& t, std::string_view what, int64_t limit) {
  TENON_ASSIGN_OR_RETURN(IndexVector indices, ReadIndices(t, what));
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < limit) continue;
    return NotInRange(indices[i], limit,
                      ElementName(what, t.shape().dims(), static_cast<int64_t>(i)));
  }
  return indices;
}

StatusOr<int> NormalizeAxis(int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("Expected ", what, " in the range [", -rank, ", ", rank, "), but got ",
                           axis, ": ", what, " = ", axis, " is out of range");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

StatusOr<int> ReadAxis(const Tensor& t, int rank, std::string_view what) {
  TENON_ASSIGN_OR_RETURN(const int64_t axis, ReadInteger(t, what));
  return NormalizeAxis(axis, rank, what);
}

StatusOr<std::optional<int>> ReadAxis(const ShapeContext& c, int i, int rank,
                                      std::string_view what) {
  if (c.constant(i) == nullptr || rank < 0) return std::optional<int>();
  return ReadAxis(*c.constant(i), rank, what);
}

StatusOr<std::optional<int>> AxisAttr(const ShapeContext& c, std::string_view attr, int rank) {
  TENON_ASSIGN_OR_RETURN(const int64_t wanted, c.Attr<int64_t>(attr));
  if (rank < 0) return std::optional<int>();
  return NormalizeAxis(wanted, rank, attr);
}

Status CheckScalars(const KernelContext& ctx, int first, absl::Span<const std::string_view> names) {
  for (const std::string_view name : names) {
    TENON_RETURN_IF_ERROR(CheckRank(ctx.input(first++), 0, name));
  }
  return OkStatus();
}

Status CheckSameShape(const KernelContext& ctx) {
  const Shape& first = ctx.input(0).shape();
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    if (ctx.input(i).shape() == first) continue;
    return InvalidArgument("Inputs must have the same size and shape. Input 0: ", first,
                           " != input ", i, ": ", ctx.input(i).shape());
  }
  return OkStatus();
}

Status CheckPrefix(const Tensor& t, std::string_view what, const Tensor& prefix,
                   std::string_view prefix_what) {
  const auto dims = t.shape().dims(), wanted = prefix.shape().dims();
  if (dims.size() >= wanted.size() && dims.first(wanted.size()) == wanted) return OkStatus();
  return InvalidArgument(what, ".shape = ", t.shape(), " does not start with ", prefix_what,
                         ".shape = ", prefix.shape());
}

int64_t Product(absl::Span<const int64_t> dims, int begin, int end) {
  // Not Shape::num_elements, so a part may be large while another dimension is 0.
  int64_t product = 1;
  for (int i = begin; i < end; ++i) {
    if (__builtin_mul_overflow(product, dims[i], &product)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return product;
}

StatusOr<Tensor> ShapeTensor(const Shape& shape, DType type) {
  Tensor out(type, {shape.rank()});
  for (int i = 0; i < shape.rank() && type == DType::kInt32; ++i) {
    if (shape.dim(i) <= std::numeric_limits<int32_t>::max()) continue;
    return InvalidArgument("dimension ", i, " of shape ", shape,
                           " does not fit in int32; ask for out_type int64");
  }
  WriteIntegers(shape.dims(), &out);
  return out;
}

void WriteIntegers(absl::Span<const int64_t> values, Tensor* out) {
  if (out->dtype() == DType::kInt64) {
    std::copy(values.begin(), values.end(), out->data<int64_t>());
  } else {
    std::copy(values.begin(), values.end(), out->data<int32_t>());
  }
}

DimVector StridesOf(absl::Span<const int64_t> dims) {
  DimVector strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    // Wraps only when some dimension is 0 and nothing is addressed.
    stride = static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(dims[i]));
  }
  return strides;
}

}  // namespace tenon
