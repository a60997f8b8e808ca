// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/hash_map.h"
#include "core/base/mutex.h"

namespace tenon {

/// Who is connected to a server, and who of them has shown that he may be: by a call that was let
/// in. Those who have not get little: a short time, few bytes, few connections from one address,
/// and few calls that are refused. Peers are written as gRPC does ("ipv4:10.0.0.1:4711").
/// Thread-safe.
class Connections {
 public:
  /// From connecting to the first call that is let in.
  static constexpr std::chrono::seconds kTimeToCall{20};
  /// How many calls of an address may be refused at once, and how many more each second; past that
  /// it is hung up on for a while.
  static constexpr double kRefusals = 100, kRefusalsASecond = 10;
  static constexpr std::chrono::seconds kShutOut{10};
  /// What a stranger may send. It is looked at from outside gRPC, whose threads are busy with
  /// nothing but reading when somebody floods them. A first call is let in by its headers, long
  /// before.
  static constexpr int64_t kBytes = 1 << 20;

  /// At most `limit` at once; three quarters of what the process may have of descriptors where that
  /// is less.
  explicit Connections(int64_t limit);

  /// Takes note of a new connection of `peer` on `socket`. Empty when it may be used; else why not.
  std::string Admit(int socket, const sockaddr_storage& peer, Clock::Time now);
  /// A call of `peer` was let in. Costs nothing while all are welcome.
  void Welcome(const std::string& peer);
  bool AllAreWelcome() const { return num_strangers_.load(std::memory_order_relaxed) == 0; }
  /// A call of `peer` was refused. When that was one too many: hangs up on its address, but for
  /// connections that are welcome, and returns what people should know.
  std::string Refuse(const std::string& peer, Clock::Time now);
  /// Hangs up on those who have not called in time, and, when they send too much at two calls in a
  /// row, on their address; to be called every kBetweenSweeps unless all are welcome. Returns what
  /// people should know, or nothing.
  std::string Sweep(Clock::Time now);
  static constexpr std::chrono::milliseconds kBetweenSweeps{10};
  /// How many are open.
  int64_t num_open();

 private:
  /// One who has made no call yet that was let in.
  struct Stranger {
    int socket = -1;
    ino_t inode = 0;
    Clock::Time since;
    bool floods = false;
  };
  struct Offender {
    double refusals_left = kRefusals;
    Clock::Time since;
    Clock::Time shut_out_until;
  };

  bool IsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Strangers of one address.
  bool HasTooMany(const std::string& address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetStrangers(Clock::Time before) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// Hangs up on the strangers of an address, for kShutOut; what people should know.
  std::string ShutOut(const std::string& address, std::string_view why, Clock::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  /// One stranger less at the address of `peer`.
  void CountOut(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t descriptor_limit_;
  const int64_t limit_;
  const int64_t strangers_limit_;  // of one address
  std::atomic<int64_t> num_strangers_{0};
  Mutex mu_;
  /// By descriptor: the inode says whether it is still the same socket.
  flat_hash_map<int, ino_t> open_ ABSL_GUARDED_BY(mu_);
  StringMap<Stranger> strangers_ ABSL_GUARDED_BY(mu_);    // by peer
  StringMap<int64_t> strangers_of_ ABSL_GUARDED_BY(mu_);  // by address
  StringMap<Offender> offenders_ ABSL_GUARDED_BY(mu_);    // by address
  Clock::Time last_look_ ABSL_GUARDED_BY(mu_);
};

/// "ipv4:10.0.0.1:4711", "ipv6:[::1]:4711".
std::string PeerText(const sockaddr_storage& peer);

}  // namespace tenon
