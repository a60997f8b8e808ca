// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/tensor.h"

namespace tenon {

/// The text of a rendezvous key taken apart; views of it.
struct RendezvousKeyParts {
  std::string_view src_device, src_incarnation, dst_device, tensor_name, frame_and_iteration;

  /// Nothing for a text of other than five parts.
  static std::optional<RendezvousKeyParts> Of(std::string_view key);
};

/// Names one tensor of a step: who makes it, who takes it, and in which frame and iteration of a
/// loop. On the wire "src_device;src_incarnation;dst_device;tensor_name;frame:iteration", the
/// incarnation as 16 hex digits (TensorFlow's format).
struct RendezvousKey {
  std::string src_device;
  uint64_t src_incarnation = 0;
  std::string dst_device;
  std::string tensor_name;
  uint64_t frame = 0;
  int64_t iteration = 0;

  std::string ToString() const;
  /// InvalidArgument when `text` is not such a key.
  static StatusOr<RendezvousKey> Parse(std::string_view text);
};

/// Where the partitions of one step leave tensors for each other. Send never blocks; a receive
/// that comes first waits. Every key is sent once and received once. Abort makes every present and
/// future receive fail with its Status; the first one wins. Thread-safe.
class Rendezvous {
 public:
  /// `dead` marks a value on a branch not taken; the tensor is then empty.
  using RecvCallback = std::function<void(const Status& status, Tensor value, bool dead)>;

  virtual ~Rendezvous() = default;

  /// `key` is the full text of a RendezvousKey, in both functions.
  virtual Status Send(std::string_view key, Tensor value, bool dead) = 0;
  /// Calls `done` when the tensor is there or the step is aborted; at once, from this thread, when
  /// it is there already.
  virtual void RecvAsync(std::string_view key, RecvCallback done) = 0;
  virtual void Abort(const Status& why) = 0;
};

}  // namespace tenon
