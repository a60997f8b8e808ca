// SPDX-License-Identifier: Apache-2.0
#include "data/batch/shuffled_batches.h"

#include <algorithm>
#include <numeric>

#include "data/batch/batch.h"
#include "data/files/memory_claim.h"

namespace tenon {

StatusOr<ShuffledBatches> ShuffledBatches::Create(std::vector<Tensor> columns, uint64_t seed) {
  if (columns.empty()) return InvalidArgument("there is no tensor to take batches of");
  for (const Tensor& t : columns) {
    if (!t.valid() || t.rank() < 1 || t.dim(0) < 1) {
      return InvalidArgument("batches are taken of tensors with rows, found ",
                             t.valid() ? t.shape().ToString() : "no value");
    }
    if (t.dim(0) != columns[0].dim(0)) {
      return InvalidArgument("tensors of ", columns[0].dim(0), " and ", t.dim(0),
                             " rows do not belong together");
    }
    if (!IsPlain(t.dtype()) && t.dtype() != DType::kString) {
      return InvalidArgument("batches cannot be taken of a tensor of ", ToString(t.dtype()));
    }
  }
  return ShuffledBatches(std::move(columns), seed);
}

StatusOr<int64_t> ShuffledBatches::PerEpoch(int64_t size) const {
  if (size >= 1 && size <= num_rows()) return num_rows() / size;
  return InvalidArgument("a batch of ", size, " rows, wanted 1 to the ", num_rows(), " there are");
}

ShuffledBatches::ShuffledBatches(std::vector<Tensor> columns, uint64_t seed)
    : columns_(std::move(columns)), seed_(seed), order_(columns_[0].dim(0)), random_(seed) {
  std::iota(order_.begin(), order_.end(), 0);
  Shuffle();
}

void ShuffledBatches::Shuffle() {
  // Fisher-Yates.
  for (uint64_t i = order_.size() - 1; i > 0; --i)
    std::swap(order_[i], order_[random_.Below(i + 1)]);
  next_ = 0;
}

void ShuffledBatches::Seek(int64_t row) {
  const int64_t epoch = row / num_rows();
  if (epoch < epochs_completed_) {
    std::iota(order_.begin(), order_.end(), 0);
    random_ = RandomSequence(seed_);
    epochs_completed_ = 0;
    Shuffle();
  }
  for (; epochs_completed_ < epoch; ++epochs_completed_) Shuffle();
  next_ = row % num_rows();
}

StatusOr<std::vector<Tensor>> ShuffledBatches::Next(int64_t size) {
  if (size < 1) return InvalidArgument("a batch has at least one row, found ", size);
  MemoryClaim claim;
  // What overflows is more than any limit either way.
  TENON_RETURN_IF_ERROR(claim.GrowTo(size > INT64_MAX / 8 ? INT64_MAX : size * 8));
  std::vector<int64_t> rows;
  rows.reserve(std::min(size, num_rows()));
  while (static_cast<int64_t>(rows.size()) < size) {
    if (next_ == num_rows()) {
      ++epochs_completed_;
      Shuffle();
    }
    const int64_t n = std::min(size - static_cast<int64_t>(rows.size()), num_rows() - next_);
    rows.insert(rows.end(), order_.begin() + next_, order_.begin() + next_ + n);
    next_ += n;
  }
  std::vector<Tensor> batch;
  for (const Tensor& column : columns_) {
    TENON_ASSIGN_OR_RETURN(Tensor t, GatherRows(column, rows));
    batch.push_back(std::move(t));
  }
  return batch;
}

}  // namespace tenon
