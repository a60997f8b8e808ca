// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "proto/run_options.pb.h"
#include "runtime/execute/signature.h"

namespace tenon {

/// A step that a client has prepared for many runs (tf.Session's callables).
struct PreparedCall {
  Signature signature;
  RunOptions options;
};

/// The callables of one session, by the handles that its client has for them. Thread-safe.
class Callables {
 public:
  /// Keeps it and gives its handle. ResourceExhausted when there are too many: a client that
  /// forgets to release them is not to fill the memory.
  StatusOr<int64_t> Add(PreparedCall callable);
  /// InvalidArgument for a handle that never was, or was released.
  StatusOr<std::shared_ptr<const PreparedCall>> Find(int64_t handle);
  void Release(int64_t handle);

 private:
  Mutex mu_;
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  flat_hash_map<int64_t, std::shared_ptr<const PreparedCall>> callables_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
