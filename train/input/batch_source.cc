// SPDX-License-Identifier: Apache-2.0
#include "train/input/batch_source.h"

#include <algorithm>
#include <cstring>

namespace tenon {
namespace {

/// The tensors of one column, in a new first dimension.
StatusOr<Tensor> Stacked(const std::vector<InputElement>& rows, size_t column) {
  const Tensor& first = rows[0][column];
  std::vector<int64_t> dims = {static_cast<int64_t>(rows.size())};
  dims.insert(dims.end(), first.shape().dims().begin(), first.shape().dims().end());
  TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TENON_ASSIGN_OR_RETURN(Tensor batch, Tensor::Allocate(CpuAllocator(), first.dtype(), shape));
  const int64_t width = first.num_elements();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Tensor& row = rows[i][column];
    if (row.dtype() != first.dtype() || row.shape() != first.shape()) {
      return InvalidArgument("elements of a batch have equal tensors; tensor ", column, " is ",
                             ToString(first.dtype()), first.shape().ToString(), " in its first, ",
                             ToString(row.dtype()), row.shape().ToString(), " in element ", i);
    }
    if (first.dtype() == DType::kString) {
      std::copy_n(row.data<TString>(), width,
                  batch.data<TString>() + static_cast<int64_t>(i) * width);
    } else if (IsPlain(first.dtype())) {
      const size_t bytes = static_cast<size_t>(width) * SizeOf(first.dtype());
      if (bytes > 0) {
        std::memcpy(static_cast<char*>(batch.raw_data()) + i * bytes, row.raw_data(), bytes);
      }
    } else {
      return InvalidArgument("batches cannot be made of tensors of ", ToString(first.dtype()));
    }
  }
  return batch;
}

}  // namespace

StatusOr<bool> BatchSource::Next(InputElement* element) {
  std::vector<InputElement> rows;
  while (static_cast<int64_t>(rows.size()) < size_) {
    InputElement row;
    TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(&row));
    if (!found) break;
    if (!rows.empty() && row.size() != rows[0].size()) {
      return InvalidArgument("elements of a batch have equally many tensors; found ", row.size(),
                             " after ", rows[0].size());
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty() || (drop_remainder_ && static_cast<int64_t>(rows.size()) < size_)) return false;
  element->clear();
  for (size_t column = 0; column < rows[0].size(); ++column) {
    TENON_ASSIGN_OR_RETURN(Tensor stacked, Stacked(rows, column));
    element->push_back(std::move(stacked));
  }
  return true;
}

}  // namespace tenon
