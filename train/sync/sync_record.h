// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// What the chief of workers in step keeps on a parameter server, in a variable that no checkpoint
/// has: it outlives the chief, and goes with the queues beside it. Chiefs that come later read it,
/// and workers that hear nothing of theirs.
struct SyncRecord {
  int64_t epoch = 0;  // of the last chief, each one's is above those before; 0: there was none
  bool over = false;  // it has ended training
  int64_t step = 0;   // that it began with; when training is over, how many were applied

  static constexpr int kFields = 3;
  /// An int64 vector.
  Tensor ToTensor() const;
  /// InvalidArgument for other tensors.
  static StatusOr<SyncRecord> FromTensor(const Tensor& fields);
};

}  // namespace tenon
