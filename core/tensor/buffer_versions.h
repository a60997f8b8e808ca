// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "core/base/mutex.h"
#include "core/tensor/buffer.h"

namespace tenon {

/// The buffers that are, one after another, the memory of one ref variable.
///
/// TensorFlow has one buffer there, which every update writes, so that whatever was read from the
/// variable and not copied shows the update. Here a buffer that somebody else holds is not written:
/// the update makes the next version. A tensor that follows the variable (Tensor::follows) takes
/// the newest version when a kernel begins to read it, so that it shows all updates until then and
/// none while the kernel runs.
///
/// The versions end when the variable goes or gets a value of another size; whoever follows then
/// keeps the last one. Thread-safe.
class BufferVersions {
 public:
  /// Begins with `first`, which nobody else may have. The caller owns one reference to the result
  /// and the buffer another; it gives its own back by End.
  static BufferVersions* Begin(Buffer& first);

  /// Makes `next`, which nobody else may have, the newest version. The caller keeps the version
  /// before alive during the call.
  void Add(Buffer& next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  /// There will be no more versions; the caller may not use the object any longer. It keeps the
  /// newest buffer alive during the call.
  void End();

  /// The newest buffer.
  BufferRef Newest();

  /// Held by who writes into the newest version, which otherwise could be handed out meanwhile.
  Mutex mu;

 private:
  friend class Buffer;  // of which Buffer::Leaving is a part
  BufferVersions() = default;
  ~BufferVersions() = default;
  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref();
  /// Called by a version that goes.
  void Leave(bool superseded);

  std::atomic<int32_t> refs_{2};
  /// The variable keeps it, and after the end `last_` does, while somebody may ask for it.
  Buffer* newest_ ABSL_GUARDED_BY(mu) = nullptr;
  int32_t superseded_ ABSL_GUARDED_BY(mu) = 0;  // earlier versions that somebody holds
  bool ended_ ABSL_GUARDED_BY(mu) = false;
  BufferRef last_ ABSL_GUARDED_BY(mu);
};

}  // namespace tenon
