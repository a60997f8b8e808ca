// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "proto/worker.pb.h"

namespace tenon {

/// The tensors that the steps of a task have received from other tasks, kept while masters ask for
/// them (WorkerService's Logging). Thread-safe.
class TransferLog {
 public:
  /// A master that asks and dies must not fill the memory: with more receives, all are forgotten.
  static constexpr size_t kMaxReceives = 1 << 16;

  /// Does what one call of a master asks for, in TensorFlow's order.
  void Answer(const LoggingRequest& request, LoggingResponse* response);

  bool active() const { return active_.load(std::memory_order_relaxed); }
  /// A tensor that has come, by its rendezvous key; times in nanoseconds since the Unix epoch.
  void Add(int64_t step_id, const std::string& key, int64_t begin_ns, int64_t end_ns,
           int64_t num_bytes);

 private:
  std::atomic<bool> active_{false};
  Mutex mu_;
  int masters_ ABSL_GUARDED_BY(mu_) = 0;      // that want it
  size_t receives_ ABSL_GUARDED_BY(mu_) = 0;  // since all were forgotten
  flat_hash_map<int64_t, StepStats> steps_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
