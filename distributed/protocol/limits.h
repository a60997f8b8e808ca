// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <climits>
#include <cstdint>

namespace tenon {

/// Between two lines for people about the same thing.
inline constexpr std::chrono::seconds kNoticePause{5};

/// What a server takes from its clients and peers; beyond it they get ResourceExhausted, naming the
/// limit, or are hung up on. docs/security.md says what each is for.
struct ServerLimits {
  /// Bytes of one message, as it arrives.
  int64_t message_bytes = INT_MAX;
  /// Nodes of one session's graph.
  int64_t graph_nodes = 4'000'000;
  /// Sessions of the master, and of the worker, at once.
  int64_t sessions = 1000;
  /// Steps of the master that run or wait, of all sessions together.
  int64_t steps = 10'000;
  /// Connections; see Listener.
  int64_t connections = 10'000;
  /// Calls that are being answered, streams and waiting receives of TensorFlow's workers included.
  int64_t calls = 50'000;
  /// Bytes of the tensors that the steps of one session have made in one task and that are still
  /// there, variables included; see memory_account.h.
  int64_t session_memory = INT64_MAX;
  /// A session without a call or a running step for this long is closed; 0: never.
  std::chrono::seconds session_timeout{24 * 3600};
};

}  // namespace tenon
