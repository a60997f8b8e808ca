// SPDX-License-Identifier: Apache-2.0
#include "ops/arguments.h"

#include <limits>

namespace tenon {
namespace {

template <typename Vector>
StatusOr<Vector> ReadWidened(const Tensor& t, std::string_view what) {
  Vector values(t.num_elements());
  const bool known =
      Dispatch(t.dtype(), TypeList<int32_t, int64_t, int16_t, int8_t>(),
               [&]<typename T>(T) { std::copy_n(t.data<T>(), t.num_elements(), values.begin()); });
  if (!known) return InvalidArgument(what, " must be integers, found ", t.dtype());
  return values;
}

}  // namespace

StatusOr<DimVector> ReadIntegers(const Tensor& t, std::string_view what) {
  return ReadWidened<DimVector>(t, what);
}

StatusOr<IndexVector> ReadIndices(const Tensor& t, std::string_view what) {
  return ReadWidened<IndexVector>(t, what);
}

StatusOr<DimVector> ReadIntegerVector(const Tensor& t, std::string_view what) {
  if (t.rank() != 1) {
    return InvalidArgument(what, " must be a vector, found shape ", t.shape());
  }
  return ReadIntegers(t, what);
}

StatusOr<int64_t> ReadInteger(const Tensor& t, std::string_view what) {
  if (t.rank() != 0) {
    return InvalidArgument(what, " must be a scalar, found shape ", t.shape());
  }
  return ReadOnlyInteger(t, what);
}

StatusOr<int64_t> ReadOnlyInteger(const Tensor& t, std::string_view what) {
  if (t.num_elements() != 1) {
    return InvalidArgument(what, " must be a scalar, found shape ", t.shape());
  }
  TENON_ASSIGN_OR_RETURN(const DimVector values, ReadIntegers(t, what));
  return values[0];
}

StatusOr<Shape> ReadShape(const Tensor& t, std::string_view what) {
  TENON_ASSIGN_OR_RETURN(const DimVector dims, ReadIntegerVector(t, what));
  auto shape = Shape::Create(dims);
  if (!shape.ok()) return Annotate(shape.status(), what);
  return shape;
}

StatusOr<int> NormalizeAxis(int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument(what, " = ", axis, " is out of range [", -rank, ", ", rank, ")");
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
  TENON_ASSIGN_OR_RETURN(const int axis, ReadAxis(*c.constant(i), rank, what));
  return std::optional<int>(axis);
}

StatusOr<std::optional<int>> AxisAttr(const ShapeContext& c, std::string_view attr, int rank) {
  TENON_ASSIGN_OR_RETURN(const int64_t wanted, c.Attr<int64_t>(attr));
  if (rank < 0) return std::optional<int>();
  TENON_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(wanted, rank, attr));
  return std::optional<int>(axis);
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
