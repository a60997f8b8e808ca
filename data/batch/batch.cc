// SPDX-License-Identifier: Apache-2.0
#include "data/batch/batch.h"

#include <algorithm>
#include <cstring>

#include "core/base/exceptions.h"
#include "core/tensor/variant.h"

namespace tenon {
namespace {

/// Copies `n` rows of `width` elements of T.
template <typename T>
void CopyElements(const Tensor& from, int64_t begin, int64_t n, int64_t width, Tensor* to,
                  int64_t at) {
  std::copy_n(from.data<T>() + begin * width, n * width, to->data<T>() + at * width);
}

/// Elements of a row.
int64_t WidthOf(const Tensor& t) {
  return t.dim(0) > 0 ? t.num_elements() / t.dim(0) : t.shape().WithoutDim(0).num_elements();
}

/// Copies rows [begin, begin + n) of `from` over those of `to` from row `at` on. May throw when
/// memory for text is out.
void CopyRows(const Tensor& from, int64_t begin, int64_t n, int64_t width, Tensor* to, int64_t at) {
  if (from.dtype() == DType::kString) return CopyElements<TString>(from, begin, n, width, to, at);
  if (from.dtype() == DType::kVariant) return CopyElements<Variant>(from, begin, n, width, to, at);
  const size_t bytes = static_cast<size_t>(width) * SizeOf(from.dtype());
  if (bytes == 0 || n == 0) return;
  std::memcpy(static_cast<char*>(to->raw_data()) + at * bytes,
              static_cast<const char*>(from.raw_data()) + begin * bytes, n * bytes);
}

StatusOr<Tensor> AllocateRows(const Tensor& like, int64_t rows) {
  const DType dtype = like.dtype();
  if (!IsPlain(dtype) && dtype != DType::kString && dtype != DType::kVariant) {
    return InvalidArgument("rows of ", ToString(dtype), " cannot be put together");
  }
  DimVector dims(like.shape().dims().begin(), like.shape().dims().end());
  dims[0] = rows;
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  return Tensor::Allocate(CpuAllocator(), dtype, shape);
}

}  // namespace

RowBatch RowBatch::Slice(int64_t begin, int64_t end) const {
  RowBatch part{schema, {}};
  for (const Tensor& column : columns) part.columns.push_back(column.Slice(begin, end));
  return part;
}

StatusOr<Tensor> GatherRows(const Tensor& from, absl::Span<const int64_t> indices) {
  TENON_ASSIGN_OR_RETURN(Tensor rows, AllocateRows(from, static_cast<int64_t>(indices.size())));
  const int64_t width = WidthOf(from);
  TENON_RETURN_IF_ERROR(CatchExceptions([&] {
    for (size_t i = 0; i < indices.size();) {
      // Rows that lie together are copied together.
      size_t n = 1;
      while (i + n < indices.size() && indices[i + n] == indices[i] + static_cast<int64_t>(n)) ++n;
      CopyRows(from, indices[i], static_cast<int64_t>(n), width, &rows, static_cast<int64_t>(i));
      i += n;
    }
    return OkStatus();
  }));
  return rows;
}

StatusOr<Tensor> ConcatenateRows(absl::Span<const Tensor> parts, std::string_view what) {
  const Tensor& first = parts[0];
  if (parts.size() == 1) return first;
  int64_t total = 0;
  for (const Tensor& part : parts) {
    if (part.dtype() != first.dtype() ||
        part.shape().WithoutDim(0) != first.shape().WithoutDim(0)) {
      return InvalidArgument(what, " has rows of ", ToString(first.dtype()),
                             first.shape().WithoutDim(0), " and then of ", ToString(part.dtype()),
                             part.shape().WithoutDim(0));
    }
    total += part.dim(0);
  }
  TENON_ASSIGN_OR_RETURN(Tensor all, AllocateRows(first, total));
  const int64_t width = WidthOf(first);
  TENON_RETURN_IF_ERROR(CatchExceptions([&] {
    int64_t at = 0;
    for (const Tensor& part : parts) {
      CopyRows(part, 0, part.dim(0), width, &all, at);
      at += part.dim(0);
    }
    return OkStatus();
  }));
  return all;
}

void CopyRow(const Tensor& source, int64_t source_row, Tensor* target, int64_t row) {
  CopyRows(source, source_row, 1, WidthOf(source), target, row);
}

void MoveRow(Tensor* source, int64_t source_row, Tensor* target, int64_t row) {
  const int64_t width = WidthOf(*source);
  const auto move = [&]<typename T>(T) {
    T* const from = source->data<T>() + source_row * width;
    std::move(from, from + width, target->data<T>() + row * width);
  };
  if (source->dtype() == DType::kString) return move(TString());
  if (source->dtype() == DType::kVariant) return move(Variant());
  CopyRows(*source, source_row, 1, width, target, row);
}

}  // namespace tenon
