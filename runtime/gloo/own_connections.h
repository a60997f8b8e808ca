// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// Connections of this process's that a library holds, by descriptors of their own. End is
/// thread-safe.
class OwnConnections {
 public:
  /// Whether one is meant that is between these two ends, in the bytes of a sockaddr_in, or the
  /// first 24 of a sockaddr_in6.
  using Wanted = std::function<bool(const std::string& own, const std::string& peer)>;

  explicit OwnConnections(const Wanted& wanted);
  OwnConnections(OwnConnections&& other) noexcept : sockets_(std::move(other.sockets_)) {
    other.sockets_.clear();
  }
  OwnConnections& operator=(OwnConnections&&) = delete;
  /// Ends them.
  ~OwnConnections();

  /// Both sides then read the end of the connection, and whoever waits for it learns of that.
  void End() const;

 private:
  std::vector<int> sockets_;
};

}  // namespace tenon
