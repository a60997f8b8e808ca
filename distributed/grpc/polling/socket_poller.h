// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/hash_map.h"
#include "core/base/mutex.h"
#include "distributed/grpc/polling/spin_limit.h"
#include "runtime/device/thread_pool.h"

struct epoll_event;

namespace tenon {

/// Watches sockets, which are not gRPC's, on one thread of a pool at a time, which asks for a while
/// before it sleeps. Thread-safe.
///
/// Source: epoll(7), level-triggered.
class SocketPoller {
 public:
  /// Called when a socket can be read or written, or has ended; must not block.
  using Ready = std::function<void(bool readable, bool writable)>;

  /// `turn` is held while a Ready runs. Both outlive the poller.
  SocketPoller(ThreadPool& pool, Mutex& turn);
  /// REQUIRES: End has been called, and nothing of the pool's is watched.
  ~SocketPoller();
  SocketPoller(const SocketPoller&) = delete;
  SocketPoller& operator=(const SocketPoller&) = delete;

  /// Calls `ready` from now on, also when the socket ends. Returns the socket's number here; 0 when
  /// the system does not watch it. The socket stays the caller's.
  uint64_t Add(int socket, Ready ready);
  /// Whether it is to be said that the socket can be read, or written; neither after Add. Nothing
  /// happens to sockets that are not watched any more.
  void SetReads(uint64_t number, bool reads);
  void SetWrites(uint64_t number, bool writes);
  /// Ready is not called after it has returned, if the caller holds the turn.
  void Remove(uint64_t number);

  /// Ends the watching.
  void End();

 private:
  struct Socket {
    int socket = -1;
    uint32_t events = 0;
    std::shared_ptr<const Ready> ready;
  };

  /// Waits for an event and handles it; false after End.
  bool Watch();
  void SetEvent(uint64_t number, uint32_t event, bool wanted);

  Mutex& turn_;
  const int epoll_;
  const int end_;         // an eventfd, which End writes
  bool watches_ = false;  // set once; not without a file or a thread left
  SpinLimit spin_;
  Mutex mu_;
  uint64_t last_number_ ABSL_GUARDED_BY(mu_) = 0;
  flat_hash_map<uint64_t, Socket> sockets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
