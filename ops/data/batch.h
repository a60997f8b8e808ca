// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/data/dataset.h"

namespace tenon {

struct BatchSize {
  int64_t rows = 1;
  bool drop_remainder = false;
};
/// Inputs `size`, which must be above 0, and `drop_remainder`, if the op has so many.
StatusOr<BatchSize> ReadBatchSize(const KernelContext& ctx, int size, int drop_remainder);

/// How many rows each component of `batch` has: the same number.
StatusOr<int64_t> NumRows(const DatasetElement& batch);

/// Elements of `input` stacked along a new first dimension; `spec` says what they are then.
DatasetPtr MakeBatchDataset(DatasetPtr input, const ElementSpec& spec, const BatchSize& size);

}  // namespace tenon
