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

/// What a group of kernels queues, recorded.
struct CachedCapture {
  std::unique_ptr<QueueCapture> work;
  /// Where it finds what comes in in the device's memory; invalid for what is in the host's, which
  /// is part of it.
  std::vector<Tensor> inputs;
  /// What it gives. Somebody else who shares one of them still reads what it gave last.
  std::vector<Tensor> outputs;
  bool lost = false;  // the device has taken its memory back; of who uses it
  std::atomic<bool> in_use{false};
};

/// The recordings of one group, by all that they depend on. Thread-safe.
class CaptureCache {
 public:
  enum class Action : uint8_t { kRun, kRecord, kRepeat };
  struct Choice {
    Action action = Action::kRun;
    std::shared_ptr<CachedCapture> recording;  // to repeat
    /// Keeps the recording from others until it goes.
    std::shared_ptr<void> use;
  };

  /// What to do with a run to which `key` comes in. After kRecord the caller gives what came of it.
  Choice Choose(const std::string& key);
  /// Keeps it, for the caller to repeat at once. Null when the run cannot be recorded: kRun.
  Choice Keep(const std::string& key, std::shared_ptr<CachedCapture> recording);
  /// It is not to be repeated again.
  void Drop(const std::string& key);

 private:
  struct Entry {
    std::string key;
    uint64_t last_seen = 0;
    int tries = 0;
    std::shared_ptr<CachedCapture> recording;
  };
  Entry* Find(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  uint64_t now_ ABSL_GUARDED_BY(mu_) = 0;
  int made_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t repeats_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
