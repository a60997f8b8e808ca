// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "core/base/status.h"

namespace tenon {

/// An address of a host, of IPv4 or IPv6, with a port or without. A value type.
class HostAddress {
 public:
  /// REQUIRES: an address of IPv4 or IPv6.
  HostAddress(const sockaddr* address, socklen_t size);
  /// All addresses of this host, of `family`.
  static HostAddress Any(int family);

  bool is_v6() const { return at_.ss_family == AF_INET6; }
  bool IsAny() const;
  bool IsLoopback() const;
  /// "10.0.0.1:4711", "[::1]:4711".
  std::string ToString() const;
  int port() const { return ntohs(is_v6() ? v6().sin6_port : v4().sin_port); }
  void set_port(int port);

  int family() const { return at_.ss_family; }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&at_); }
  socklen_t size() const { return size_; }
  friend bool operator==(const HostAddress& a, const HostAddress& b);

 private:
  HostAddress() = default;
  const sockaddr_in& v4() const { return reinterpret_cast<const sockaddr_in&>(at_); }
  const sockaddr_in6& v6() const { return reinterpret_cast<const sockaddr_in6&>(at_); }

  sockaddr_storage at_{};
  socklen_t size_ = 0;
};

/// The addresses of `host`, a name or an address, one of IPv6 in brackets or without; each once and
/// without a port. Unavailable, with the resolver's reason, when there are none.
StatusOr<std::vector<HostAddress>> ResolveHost(const std::string& host);

/// The host of "host:port".
std::string HostOf(const std::string& address);

/// Whether the host of "host:port" is this machine alone: every address that it has is a loopback
/// one. False when it cannot be resolved.
bool IsLoopback(const std::string& address);

}  // namespace tenon
