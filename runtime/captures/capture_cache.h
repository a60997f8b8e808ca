// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/device/queue_capture.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// The captured work of kernels that run as one.
struct CachedCapture {
  std::unique_ptr<QueueCapture> work;
  /// The places in the device's memory where it takes its inputs; invalid for an input in the
  /// host's memory, whose value is part of the capture.
  std::vector<Tensor> inputs;
  /// Its outputs. Somebody who still shares one of them reads what the last repetition gave.
  std::vector<Tensor> outputs;
  bool lost = false;  // the device has taken its memory back; for its user alone
  std::atomic<bool> in_use{false};
};

/// The captures of one node, by all that they depend on. Thread-safe.
class CaptureCache {
 public:
  enum class Action : uint8_t { kRun, kCapture, kRepeat };
  struct Choice {
    Action action = Action::kRun;
    std::shared_ptr<CachedCapture> capture;  // to repeat
    /// Keeps the capture from others until it goes.
    std::shared_ptr<void> use;
  };

  /// What to do with a run to which `key` comes in. After kCapture the caller gives what came of
  /// it.
  Choice Choose(const std::string& key);
  /// Keeps it, for the caller to repeat at once. Null when the run cannot be captured: kRun.
  Choice Keep(const std::string& key, std::shared_ptr<CachedCapture> capture);
  /// It is not to be repeated again.
  void Drop(const std::string& key);

 private:
  struct Entry {
    std::string key;
    uint64_t last_seen = 0;
    int tries = 0;
    std::shared_ptr<CachedCapture> capture;
  };
  Entry* Find(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  uint64_t now_ ABSL_GUARDED_BY(mu_) = 0;
  int made_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t repeats_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
