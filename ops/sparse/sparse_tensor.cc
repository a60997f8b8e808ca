// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/sparse_tensor.h"

#include <algorithm>
#include <numeric>

#include "core/base/interruption.h"
#include "ops/arguments.h"
#include "ops/elements.h"

namespace tenon {
namespace {

// Both in the words of several of TensorFlow's ops.

Status CheckCounts(int64_t indices, int64_t values) {
  if (indices == values) return OkStatus();
  return InvalidArgument("Number of elements in indices (", indices, ") and values (", values,
                         ") do not match: Dimensions ", indices, " and ", values,
                         " are not compatible");
}

Status CheckRanks(int64_t index, int64_t shape) {
  if (index == shape) return OkStatus();
  return InvalidArgument("Index rank (", index, ") and shape rank (", shape,
                         ") do not match: Dimensions ", index, " and ", shape,
                         " are not compatible");
}

}  // namespace

StatusOr<SparseTensor> SparseTensor::Read(const KernelContext& ctx, int first) {
  return Of(ctx.input(first), ctx.input(first + 1), ctx.input(first + 2));
}

StatusOr<SparseTensor> SparseTensor::Of(const Tensor& indices, const Tensor& values,
                                        const Tensor& shape) {
  TENON_RETURN_IF_ERROR(CheckRank(values, 1, "the values of a sparse tensor"));
  TENON_RETURN_IF_ERROR(CheckRank(indices, 2, "the indices of a sparse tensor"));
  TENON_RETURN_IF_ERROR(CheckCounts(indices.dim(0), values.dim(0)));
  TENON_ASSIGN_OR_RETURN(SparseTensor sparse, OfIndices(indices, shape));
  sparse.values = values;
  return sparse;
}

StatusOr<SparseTensor> SparseTensor::OfIndices(const Tensor& indices, const Tensor& shape) {
  TENON_RETURN_IF_ERROR(CheckRank(indices, 2, "the indices of a sparse tensor"));
  SparseTensor sparse;
  TENON_ASSIGN_OR_RETURN(sparse.dims, ReadIntegerVector(shape, "the shape of a sparse tensor"));
  TENON_RETURN_IF_ERROR(CheckRanks(indices.dim(1), sparse.rank()));
  for (const int64_t size : sparse.dims) {
    if (size < 0) {
      return InvalidArgument("the sizes of a sparse tensor must not be negative, found ", size);
    }
  }
  sparse.input = indices;
  if (indices.dtype() == DType::kInt64) {
    sparse.indices = indices.flat<int64_t>();
  } else {
    const absl::Span<const int32_t> narrow = indices.flat<int32_t>();
    sparse.widened.assign(narrow.begin(), narrow.end());
    sparse.indices = sparse.widened;
  }
  return sparse;
}

namespace {

std::string IndexText(const SparseTensor& sparse, int64_t i) {
  return StrCat("indices[", i, "] = [", Join(sparse.index(i), ","), "]");
}

bool InBounds(absl::Span<const int64_t> index, const DimVector& dims) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (index[d] < 0 || index[d] >= dims[d]) return false;
  }
  return true;
}

}  // namespace

Status SparseTensor::CheckBounds() const {
  for (int64_t i = 0; i < size(); ++i) {
    if (InBounds(index(i), dims)) continue;
    return InvalidArgument(IndexText(*this, i), " is out of bounds: need 0 <= index < [",
                           Join(dims, ","), "]");
  }
  return OkStatus();
}

Status SparseTensor::CheckSorted() const {
  TENON_RETURN_IF_ERROR(CheckBounds());
  for (int64_t i = 1; i < size(); ++i) {
    const std::strong_ordering order = CompareIndices(index(i - 1), index(i));
    if (order < 0) continue;
    if (order == 0) return InvalidArgument(IndexText(*this, i), " is repeated");
    return InvalidArgument(IndexText(*this, i), " is out of order. Many sparse ops require sorted ",
                           "indices; SparseReorder sorts them");
  }
  return OkStatus();
}

std::strong_ordering CompareIndices(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] != b[d]) return a[d] <=> b[d];
  }
  return std::strong_ordering::equal;
}

CountedVector<int64_t> RowMajorOrder(absl::Span<const int64_t> indices, int64_t count, int rank) {
  CountedVector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const auto less = [=](int64_t i, int64_t j) {
    const auto by_index =
        CompareIndices(indices.subspan(i * rank, rank), indices.subspan(j * rank, rank));
    return by_index != 0 ? by_index < 0 : i < j;
  };
  if (!std::is_sorted(order.begin(), order.end(), less)) {
    std::sort(order.begin(), order.end(), less);
  }
  return order;
}

Status SparseEntries::WriteIndices(KernelContext& ctx, int output) const {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, {size(), rank_}));
  std::copy(indices_.begin(), indices_.end(), out->data<int64_t>());
  return OkStatus();
}

Status SparseEntries::WriteValues(KernelContext& ctx, int output, const Tensor& values,
                                  const Tensor& others) const {
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(output, {size()}));
  DispatchElement(out->dtype(), [&]<typename T>(T) {
    const T* in = static_cast<const T*>(values.raw_data());
    const T* other = static_cast<const T*>(others.raw_data());
    T* to = static_cast<T*>(out->raw_data());
    SerialFor(size(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = from_[i] < 0 ? other[~from_[i]] : in[from_[i]];
    });
  });
  return OkStatus();
}

Status WriteVector(KernelContext& ctx, int output, absl::Span<const int64_t> values) {
  TENON_ASSIGN_OR_RETURN(Tensor * out,
                         ctx.AllocateOutput(output, {static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), out->data<int64_t>());
  return OkStatus();
}

StatusOr<PartialShape> SparseInputShape(const ShapeContext& c, int first) {
  TENON_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(first, 2));
  TENON_RETURN_IF_ERROR(c.WithRank(first + 1, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRank(first + 2, 1));
  TENON_ASSIGN_OR_RETURN(const PartialShape known, c.ConstantShape(first + 2));
  const int64_t length = std::max(indices.dim(1), shape.dim(0));
  const bool fits = indices.dim(1) == shape.dim(0) || indices.dim(1) < 0 || shape.dim(0) < 0;
  if (!fits || length > Shape::kMaxRank) return PartialShape();
  return known.MergeWith(PartialShape::OfRank(static_cast<int>(length)));
}

void SetSparseOutputs(ShapeContext& c, int first, int64_t entries, int64_t rank) {
  c.set_output(first, PartialShape{entries, rank});
  c.set_output(first + 1, PartialShape{entries});
  c.set_output(first + 2, PartialShape{rank});
}

}  // namespace tenon
