// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

// What workers in step say to their chief, and it to them, through queues on a parameter server:
// all workers put SyncMessages into one queue, and each has a queue of SyncTurns of its own, so
// that none can use up those of others. A message may come twice; turns may too. What may be lost
// is said again; how training ended stays on record (sync_record.h).

namespace tenon {

/// From a worker to the chief.
struct SyncMessage {
  enum Kind : int64_t {
    kHere = 1,  // it is there, and waits for a turn of a step after `step`; said every second
    kDone = 2,  // its gradients of `shard` in `step` have been handed in
    kLeft = 3,  // it needs no more turns
  };
  Kind kind = kHere;
  int64_t worker = 0;
  int64_t incarnation = 0;  // of the worker's process
  int64_t epoch = 0;        // of the chief that gave the turn; 0: none did
  int64_t step = -1;
  int64_t shard = 0;

  static constexpr int kFields = 6;
  /// An int64 vector.
  Tensor ToTensor() const;
  static StatusOr<SyncMessage> FromTensor(const Tensor& fields);
};

/// From the chief to a worker.
struct SyncTurn {
  enum Kind : int64_t {
    kWork = 1,     // compute the gradients of `shard` in `step`
    kWaiting = 2,  // `step` still waits for worker `missing`
    kOver = 3,     // training has ended
  };
  Kind kind = kWork;
  int64_t epoch = 0;  // later chiefs have higher ones; see SyncRecord
  int64_t step = 0;
  int64_t shard = 0;
  int64_t missing = -1;

  static constexpr int kFields = 5;
  /// An int64 vector.
  Tensor ToTensor() const;
  static StatusOr<SyncTurn> FromTensor(const Tensor& fields);
};

}  // namespace tenon
