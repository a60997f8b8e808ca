// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "distributed/grpc/peer/local_socket.h"
#include "distributed/protocol/credentials.h"
#include "proto/peer_service.pb.h"

namespace tenon {

// Tasks of one host copy large tensors out of each other's memory, once, by the system, in place of
// into and out of a connection. Source: process_vm_readv(2), pidfd_open(2), prctl(2).

/// With more bytes than this tensors stay in this process's memory until others have copied them;
/// null where all are sent: on connections that are encrypted, and where the variable
/// TENON_HOST_MEMORY is "off". InvalidArgument when it is neither that nor a number of bytes.
StatusOr<std::optional<size_t>> HostMemoryLimit(const Credentials& credentials);

inline constexpr size_t kMemoryChallengeBytes = 32;

/// Random bytes that a process has another one show, which claims to be on the same host; empty
/// when the system gives none.
std::string NewMemoryChallenge();

/// The leave of another process of this host to read this one's memory, until it is hidden.
class ShownMemory {
 public:
  /// Processes of the same user may read this one's memory from now on. `challenge` is the other's.
  explicit ShownMemory(const std::string& challenge);
  ~ShownMemory() { Hide(); }
  ShownMemory(const ShownMemory&) = delete;
  ShownMemory& operator=(const ShownMemory&) = delete;

  /// Where the challenge is.
  cluster::PeerMemoryPlace place() const;
  /// Whether `proof` is what PeerMemory::ReadProof gives a process that can read the memory.
  bool IsProof(std::string_view proof) const;
  /// Wipes the challenge: what others read later, or are still reading, is an error of theirs. To
  /// be called before what they may be reading is freed.
  void Hide();

 private:
  std::string challenge_;  // and, after it, random bytes that only who reads them here knows
};

/// The memory of a process on this host, which this one may read. Thread-safe.
class PeerMemory {
 public:
  /// Null when `challenge` is not at the place: the process is on another host or in another
  /// container, or its memory is not for this one to read.
  static std::unique_ptr<PeerMemory> Open(const cluster::PeerMemoryPlace& place,
                                          std::string_view challenge);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// Copies `bytes` at `address` there to `to`, which may have been written in part after an error.
  /// Unavailable when the process has ended, has hidden its memory or has none at this place;
  /// PermissionDenied when this process may not read it any more.
  Status Read(uint64_t address, void* to, size_t bytes) const;
  /// The bytes that show that process that this one reads its memory; empty when it does not.
  std::string ReadProof() const;
  /// One of that process's sockets, which is then this one's as well; not valid when the system
  /// does not give it. Source: pidfd_getfd(2).
  OwnedFile TakeSocket(const cluster::PeerSocket& socket) const;

 private:
  PeerMemory(const cluster::PeerMemoryPlace& place, std::string_view challenge, int handle)
      : process_(place.process()),
        shown_(place.address()),
        challenge_(challenge),
        handle_(handle) {}

  const pid_t process_;
  const uint64_t shown_;  // where the challenge is while what is read is there
  const std::string challenge_;
  const int handle_;  // tells it from a later process with the same number
};

}  // namespace tenon
