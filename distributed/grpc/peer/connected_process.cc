// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/connected_process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/strings.h"
#include "distributed/grpc/peer/local_socket.h"
#include "distributed/grpc/rpc/host_address.h"

namespace tenon {
namespace {

/// Reads "ipv4:1.2.3.4:80", "ipv6:[::1]:80" and "ipv6:%5B::1%5D:80".
std::optional<HostAddress> ReadPeer(std::string_view peer) {
  const bool is_v4 = peer.starts_with("ipv4:");
  if (!is_v4 && !peer.starts_with("ipv6:")) return std::nullopt;
  peer.remove_prefix(5);
  const size_t colon = peer.rfind(':');
  if (colon == peer.npos) return std::nullopt;
  const std::string_view digits = peer.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  std::string_view host = peer.substr(0, colon);
  sockaddr_in v4 = {};
  sockaddr_in6 v6 = {};
  if (is_v4) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    if (inet_pton(AF_INET, std::string(host).c_str(), &v4.sin_addr) != 1) return std::nullopt;
    return HostAddress(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4));
  }
  for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"%5B", "%5D"}}) {
    if (!host.starts_with(open) || !host.ends_with(close)) continue;
    host.remove_prefix(std::strlen(open));
    host.remove_suffix(std::strlen(close));
    break;
  }
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, std::string(host).c_str(), &v6.sin6_addr) != 1) return std::nullopt;
  return HostAddress(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6));
}

/// IPv4's addresses are within IPv6's: ::ffff:127.0.0.1.
std::array<uint8_t, 16> BytesOf(const HostAddress& address) {
  std::array<uint8_t, 16> bytes = {};
  if (address.is_v6()) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address.data())->sin6_addr,
                bytes.size());
  } else {
    bytes[10] = bytes[11] = 0xff;
    std::memcpy(&bytes[12], &reinterpret_cast<const sockaddr_in*>(address.data())->sin_addr, 4);
  }
  return bytes;
}

bool IsSame(const HostAddress& a, const HostAddress& b) {
  return a.port() == b.port() && BytesOf(a) == BytesOf(b);
}

std::optional<HostAddress> NameOf(int socket, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  if (get(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0 ||
      (storage.ss_family != AF_INET && storage.ss_family != AF_INET6)) {
    return std::nullopt;
  }
  return HostAddress(reinterpret_cast<const sockaddr*>(&storage), size);
}

bool IsEstablished(int socket) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED;
}

/// Calls `visit` with the number of every descriptor of a process, and the folder of their links,
/// until it returns false.
void VisitDescriptors(pid_t process, const std::function<bool(int folder, int number)>& visit) {
  const std::string path = StrCat("/proc/", process, "/fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(path.c_str()), closedir);
  if (open == nullptr) return;
  while (const dirent* const entry = readdir(open.get())) {
    const std::string_view name = entry->d_name;
    int number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec != std::errc()) continue;
    if (!visit(dirfd(open.get()), number)) return;
  }
}

/// This process's ends of its connections with `peer`.
std::vector<HostAddress> OwnEnds(const HostAddress& peer) {
  std::vector<HostAddress> ends;
  VisitDescriptors(getpid(), [&](int, int number) {
    const auto other = NameOf(number, getpeername);
    if (!other || !IsSame(*other, peer) || !IsEstablished(number)) return true;
    if (const auto own = NameOf(number, getsockname)) ends.push_back(*own);
    return true;
  });
  return ends;
}

/// The inode of the socket here that is at `own` and connected with `other`.
std::optional<uint64_t> FindSocket(const OwnedFile& netlink, const HostAddress& own,
                                   const HostAddress& other) {
  struct {
    nlmsghdr header = {};
    inet_diag_req_v2 request = {};
  } question;
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_family = AF_INET6;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = ~0u;
  inet_diag_sockid& id = question.request.id;
  id.idiag_sport = htons(static_cast<uint16_t>(own.port()));
  id.idiag_dport = htons(static_cast<uint16_t>(other.port()));
  std::memcpy(id.idiag_src, BytesOf(own).data(), sizeof(id.idiag_src));
  std::memcpy(id.idiag_dst, BytesOf(other).data(), sizeof(id.idiag_dst));
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  if (send(netlink.number(), &question, sizeof(question), 0) != sizeof(question)) {
    return std::nullopt;
  }
  struct {
    nlmsghdr header;
    inet_diag_msg message;
    std::array<char, 1024> attributes;
  } answer = {};
  const ssize_t size = recv(netlink.number(), &answer, sizeof(answer), 0);
  if (size < static_cast<ssize_t>(sizeof(nlmsghdr) + sizeof(inet_diag_msg)) ||
      answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      // The kernel gives the socket that listens where there is no connection.
      answer.message.idiag_state != TCP_ESTABLISHED) {
    return std::nullopt;
  }
  return answer.message.idiag_inode;
}

bool HasSockets(pid_t process, flat_hash_set<uint64_t> inodes) {
  VisitDescriptors(process, [&](int folder, int number) {
    std::array<char, 64> target = {};
    const ssize_t size =
        readlinkat(folder, StrCat(number).c_str(), target.data(), target.size() - 1);
    unsigned long long inode = 0;
    if (size > 0 && std::sscanf(target.data(), "socket:[%llu]", &inode) == 1) inodes.erase(inode);
    return !inodes.empty();
  });
  return inodes.empty();
}

}  // namespace

bool IsOfThisHost(std::string_view peer) {
  auto address = ReadPeer(peer);
  if (!address || address->IsAny()) return false;
  // A socket can be given addresses of this host only.
  address->set_port(0);
  const OwnedFile socket(::socket(address->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket.valid() && bind(socket.number(), address->data(), address->size()) == 0;
}

bool IsConnectedTo(pid_t process, std::string_view peer) {
  const auto address = ReadPeer(peer);
  if (!address || process <= 0) return false;
  const OwnedFile netlink(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink.valid()) return false;
  flat_hash_set<uint64_t> inodes;
  for (const HostAddress& own : OwnEnds(*address)) {
    const auto inode = FindSocket(netlink, *address, own);
    if (!inode) return false;
    // A connection that nobody has accepted has no inode yet, and has said nothing.
    if (*inode != 0) inodes.insert(*inode);
  }
  return !inodes.empty() && HasSockets(process, std::move(inodes));
}

}  // namespace tenon
