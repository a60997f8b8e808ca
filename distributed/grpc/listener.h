// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/hash_map.h"
#include "core/mutex.h"
#include "core/status.h"

namespace tenon {

/// Accepts connections and hands them on, so many at once and no more: gRPC would take all that
/// come, and leave the process without descriptors. Those beyond are hung up on, which fails the
/// calls that are made there; told why in HTTP/2, gRPC's clients would try again for ever.
/// Thread-safe.
class Listener {
 public:
  /// Owns the connected socket, which does not block, from then on.
  using Take = std::function<void(int socket)>;

  /// At most `max_connections` are open at once, or three quarters of the descriptors that the
  /// process may have where that is less. `notice` gets a line for people when some had to be
  /// refused, at most every five seconds; it may be null.
  Listener(int64_t max_connections, std::function<void(const std::string&)> notice);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Listens at every address of `host`, a name, an IPv4 address or an IPv6 address in brackets;
  /// 0.0.0.0 and [::] are all of the machine's, of both kinds. Port 0 is any free one. Returns the
  /// port. Unavailable with the system's reason. Before Start.
  StatusOr<int> Listen(const std::string& host, int port, Take take);
  /// Connections are handed on from now on; before, they wait. ResourceExhausted without
  /// descriptors.
  Status Start();
  /// Listens no more. What was handed on stays open.
  void Stop();
  /// How many of those that were handed on are open.
  int64_t num_connections();

 private:
  using Clock = std::chrono::steady_clock;

  void Run();
  void AcceptFrom(int listening, const Take& take);
  bool IsFull();
  void NoticeRefusal(const std::string& why);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t descriptor_limit_;
  const int64_t max_connections_;
  const std::function<void(const std::string&)> notice_;
  /// The sockets that listen, and, once started, one that Stop writes to; takers_ has an entry for
  /// each but that.
  std::vector<pollfd> polled_;
  std::vector<Take> takers_;
  int stop_ = -1;
  std::jthread thread_;
  // For the thread alone.
  int spare_ = -1;
  int64_t num_refused_ = 0;  // since the last notice
  Clock::time_point last_notice_{};
  Clock::time_point last_look_{};

  Mutex mu_;
  /// By descriptor: the inode says whether it is still the same socket.
  flat_hash_map<int, ino_t> open_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
