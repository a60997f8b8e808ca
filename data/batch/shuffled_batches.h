// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/tensor/tensor.h"
#include "data/batch/random_sequence.h"

namespace tenon {

/// Endless batches of rows in random order, as the tutorials of TensorFlow 1 take them: each epoch
/// is a new permutation of all rows, and a batch that reaches the end of one epoch goes on with the
/// beginning of the next, so that every batch is full and every row comes once an epoch. The order
/// depends on the seed alone. Used by one thread at a time.
///
///   ShuffledBatches batches({train.images, train.labels}, seed);
///   TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> xy, batches.Next(100));
class ShuffledBatches {
 public:
  /// Tensors in host memory with the same first dimension, at least 1, whose rows belong together.
  static StatusOr<ShuffledBatches> Create(std::vector<Tensor> columns, uint64_t seed);

  /// The next batch begins with row number `row`, at least 0, of the sequence: for training that
  /// goes on, or workers that share the sequence. Costs time for each epoch that it passes.
  void Seek(int64_t row);
  /// `size` rows of each tensor; InvalidArgument when it is not positive.
  StatusOr<std::vector<Tensor>> Next(int64_t size);

  /// The full batches of `size` rows in an epoch; InvalidArgument when there is none.
  StatusOr<int64_t> PerEpoch(int64_t size) const;
  int64_t num_rows() const { return static_cast<int64_t>(order_.size()); }
  /// How often a batch has gone past the end of an epoch.
  int64_t epochs_completed() const { return epochs_completed_; }

 private:
  ShuffledBatches(std::vector<Tensor> columns, uint64_t seed);
  void Shuffle();

  std::vector<Tensor> columns_;
  uint64_t seed_;
  std::vector<int64_t> order_;
  int64_t next_ = 0;
  int64_t epochs_completed_ = 0;
  RandomSequence random_;
};

}  // namespace tenon
