// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/peer/listening_process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "core/base/hash_map.h"
#include "core/base/strings.h"

namespace tenon {
namespace {

/// An address of IPv6; those of IPv4 are mapped into it (::ffff:127.0.0.1).
using Address = std::array<uint8_t, 16>;

struct Endpoint {
  Address address;
  uint16_t port;
};

Address Mapped(const in_addr& address) {
  Address mapped = {};
  mapped[10] = mapped[11] = 0xff;
  std::memcpy(&mapped[12], &address, sizeof(address));
  return mapped;
}

bool IsMapped(const Address& address) {
  return std::memcmp(address.data(), Mapped({}).data(), 12) == 0;
}

std::optional<uint16_t> ReadPort(std::string_view text, int base) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

/// Reads "ipv4:1.2.3.4:80", "ipv6:[::1]:80" and "ipv6:%5B::1%5D:80".
std::optional<Endpoint> ReadPeer(std::string_view peer) {
  const bool is_v4 = peer.starts_with("ipv4:");
  if (!is_v4 && !peer.starts_with("ipv6:")) return std::nullopt;
  peer.remove_prefix(5);
  const size_t colon = peer.rfind(':');
  if (colon == peer.npos) return std::nullopt;
  const auto port = ReadPort(peer.substr(colon + 1), 10);
  if (!port) return std::nullopt;
  std::string_view host = peer.substr(0, colon);
  if (is_v4) {
    in_addr v4;
    if (inet_pton(AF_INET, std::string(host).c_str(), &v4) != 1) return std::nullopt;
    return Endpoint{Mapped(v4), *port};
  }
  for (const auto& [open, close] : {std::pair{"[", "]"}, std::pair{"%5B", "%5D"}}) {
    if (!host.starts_with(open) || !host.ends_with(close)) continue;
    host.remove_prefix(std::strlen(open));
    host.remove_suffix(std::strlen(close));
    break;
  }
  Address v6;
  // The name of a link follows its own addresses here, and is not in the kernel's list.
  if (inet_pton(AF_INET6, std::string(host.substr(0, host.find('%'))).c_str(), v6.data()) != 1) {
    return std::nullopt;
  }
  return Endpoint{v6, *port};
}

/// The kernel writes an address as numbers of four bytes, each in the machine's order.
std::optional<Endpoint> ReadLocalAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon != 8 && colon != 32) return std::nullopt;
  Address address = {};
  uint8_t* to = address.data();
  if (colon == 8) {
    address = Mapped({});
    to += 12;
  }
  for (size_t i = 0; i < colon; i += 8, to += 4) {
    uint32_t number = 0;
    const char* const from = text.data() + i;
    if (std::from_chars(from, from + 8, number, 16).ptr != from + 8) return std::nullopt;
    std::memcpy(to, &number, sizeof(number));
  }
  const auto port = ReadPort(text.substr(colon + 1), 16);
  if (!port) return std::nullopt;
  return Endpoint{address, *port};
}

/// Whether this host has the address. One of another host may have a port that is also a socket's
/// here which listens at all addresses.
bool IsOwnAddress(const Address& address) {
  if (IsMapped(address) && address[12] == 127) return true;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    Address own = {};
    if (entry->ifa_addr->sa_family == AF_INET) {
      own = Mapped(reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      std::memcpy(own.data(), &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr,
                  own.size());
    } else {
      continue;
    }
    if (own == address) return true;
  }
  return false;
}

/// The inodes of the sockets that listen there: those of this very address, or else of all
/// addresses.
flat_hash_set<uint64_t> ListeningSockets(const Endpoint& wanted) {
  constexpr std::string_view kListens = "0A";
  flat_hash_set<uint64_t> exact, of_all;
  for (const char* const path : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);  // what the columns are
    while (std::getline(file, line)) {
      // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
      std::array<char, 80> local = {}, state = {};
      unsigned long long inode = 0;
      if (std::sscanf(line.c_str(), " %*s %79s %*s %79s %*s %*s %*s %*s %*s %llu", local.data(),
                      state.data(), &inode) != 3 ||
          state.data() != kListens) {
        continue;
      }
      const auto found = ReadLocalAddress(local.data());
      if (!found || found->port != wanted.port) continue;
      const bool all_v4 = found->address == Mapped({}), all_v6 = found->address == Address{};
      if (found->address == wanted.address) {
        exact.insert(inode);
      } else if (all_v6 || (all_v4 && IsMapped(wanted.address))) {
        of_all.insert(inode);
      }
    }
  }
  return exact.empty() ? of_all : exact;
}

/// Whether the process has one of the sockets.
bool HasSocket(pid_t process, const flat_hash_set<uint64_t>& inodes) {
  const std::string folder = StrCat("/proc/", process, "/fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  if (open == nullptr) return false;
  while (const dirent* const entry = readdir(open.get())) {
    std::array<char, 64> target = {};
    const ssize_t size =
        readlinkat(dirfd(open.get()), entry->d_name, target.data(), target.size() - 1);
    unsigned long long inode = 0;
    if (size > 0 && std::sscanf(target.data(), "socket:[%llu]", &inode) == 1 &&
        inodes.contains(inode)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool IsOfThisHost(std::string_view peer) {
  const auto found = ReadPeer(peer);
  return found && IsOwnAddress(found->address);
}

bool IsListeningAt(pid_t process, std::string_view peer) {
  const auto wanted = ReadPeer(peer);
  if (!wanted || process <= 0 || !IsOwnAddress(wanted->address)) return false;
  const auto inodes = ListeningSockets(*wanted);
  return !inodes.empty() && HasSocket(process, inodes);
}

}  // namespace tenon
