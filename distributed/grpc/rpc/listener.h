// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "distributed/grpc/rpc/connections.h"

namespace tenon {

/// Accepts connections and hands them on, where Connections admits them: gRPC would take all that
/// come. The others are hung up on, which fails the calls that are made there; told why in HTTP/2,
/// gRPC's clients would try again for ever. Thread-safe.
class Listener {
 public:
  /// Owns the connected socket, which does not block, from then on.
  using Take = std::function<void(int socket)>;

  /// `notice` gets a line for people when some had to be refused, at most every five seconds, and
  /// when an address is shut out; it may be null. `clock` must outlive it.
  Listener(int64_t max_connections, Clock& clock, std::function<void(const std::string&)> notice);
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

  /// A call was let in, or refused for want of credentials, of which people get a line every few
  /// seconds.
  void LetIn(const grpc::ServerContextBase& call);
  void Refused(const grpc::ServerContextBase& call);
  int64_t num_connections() { return connections_.num_open(); }

 private:
  void Run();
  void AcceptFrom(int listening, const Take& take);
  void NoticeRefusal(const std::string& why);
  /// Whether a line about refused calls is due; then the next one is due some time later.
  bool TakeNoticeOfCalls(Clock::Time now);

  Clock& clock_;
  Connections connections_;
  const std::function<void(const std::string&)> notice_;
  /// The sockets that listen, and, once started, one that Stop writes to; takers_ has an entry for
  /// each but that.
  std::vector<pollfd> polled_;
  std::vector<Take> takers_;
  int stop_ = -1;
  Mutex mu_;
  Clock::Time next_notice_of_calls_ ABSL_GUARDED_BY(mu_);
  std::jthread thread_;
  // For the thread alone.
  int spare_ = -1;
  int64_t num_refused_ = 0;  // since the last notice
  Clock::Time last_notice_{};
  Clock::Time next_sweep_{};
};

}  // namespace tenon
