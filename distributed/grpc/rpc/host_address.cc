// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/host_address.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/strings.h"

namespace tenon {

HostAddress::HostAddress(const sockaddr* address, socklen_t size) : size_(size) {
  TENON_CHECK(size <= sizeof(at_));
  std::memcpy(&at_, address, size);
}

HostAddress HostAddress::Any(int family) {
  HostAddress any;
  any.at_.ss_family = static_cast<sa_family_t>(family);  // the rest is 0, as an address and as ::
  any.size_ = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return any;
}

bool HostAddress::IsAny() const {
  return is_v6() ? IN6_IS_ADDR_UNSPECIFIED(&v6().sin6_addr) : v4().sin_addr.s_addr == INADDR_ANY;
}

bool HostAddress::IsLoopback() const {
  return is_v6() ? IN6_IS_ADDR_LOOPBACK(&v6().sin6_addr) : ntohl(v4().sin_addr.s_addr) >> 24 == 127;
}

std::string HostAddress::ToString() const {
  char text[INET6_ADDRSTRLEN] = "";
  const void* const address = is_v6() ? static_cast<const void*>(&v6().sin6_addr) : &v4().sin_addr;
  inet_ntop(family(), address, text, sizeof(text));
  return is_v6() ? StrCat("[", text, "]:", port()) : StrCat(text, ":", port());
}

void HostAddress::set_port(int port) {
  const in_port_t value = htons(static_cast<uint16_t>(port));
  if (is_v6()) {
    reinterpret_cast<sockaddr_in6&>(at_).sin6_port = value;
  } else {
    reinterpret_cast<sockaddr_in&>(at_).sin_port = value;
  }
}

bool operator==(const HostAddress& a, const HostAddress& b) {
  return a.size_ == b.size_ && std::memcmp(&a.at_, &b.at_, a.size_) == 0;
}

StatusOr<std::vector<HostAddress>> ResolveHost(const std::string& host) {
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  const std::string name = in_brackets ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(name.c_str(), nullptr, &hints, &found); error != 0) {
    return Unavailable(gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<HostAddress> addresses;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
    const HostAddress address(a->ai_addr, a->ai_addrlen);
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(address);
    }
  }
  if (addresses.empty()) return Unavailable("it has no address of IPv4 or IPv6");
  return addresses;
}

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

bool IsLoopback(const std::string& address) {
  const auto addresses = ResolveHost(address.substr(0, address.rfind(':')));
  return addresses.ok() && std::all_of(addresses->begin(), addresses->end(),
                                       [](const HostAddress& a) { return a.IsLoopback(); });
}

}  // namespace tenon
