// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/connections.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// With all places taken, each connection more would have us look at all that there are.
constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr int64_t kLeastStrangers = 8;
constexpr size_t kMaxOffenders = 10'000;

int64_t DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
  return static_cast<int64_t>(limit.rlim_cur / 4 * 3);
}

/// The inode of an open socket; 0 of anything else.
ino_t InodeOf(int descriptor) {
  struct stat about {};
  return fstat(descriptor, &about) == 0 && S_ISSOCK(about.st_mode) ? about.st_ino : 0;
}

/// Ends a connection whose socket is gRPC's, which closes it. What has arrived and is not read yet
/// is dropped too, which shutdown alone would leave: it could be thousands of calls.
void HangUpOn(int socket) {
  const sockaddr nobody{AF_UNSPEC, {}};
  static_cast<void>(connect(socket, &nobody, sizeof(nobody)));
  shutdown(socket, SHUT_RDWR);
}

/// What has arrived at a TCP socket so far.
int64_t BytesReceived(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return static_cast<int64_t>(info.tcpi_bytes_received);
}

/// gRPC writes peers as URIs: the brackets of IPv6 come as %5B and %5D.
std::string Decoded(std::string_view uri) {
  std::string text;
  for (size_t i = 0; i < uri.size(); ++i) {
    unsigned code = 0;
    if (uri[i] == '%' && i + 2 < uri.size() &&
        std::from_chars(uri.data() + i + 1, uri.data() + i + 3, code, 16).ec == std::errc()) {
      text += static_cast<char>(code);
      i += 2;
    } else {
      text += uri[i];
    }
  }
  return text;
}

/// The peer without its port.
std::string AddressOf(std::string_view peer) {
  return std::string(peer.substr(0, peer.rfind(':')));
}

}  // namespace

std::string PeerText(const sockaddr_storage& peer) {
  char text[INET6_ADDRSTRLEN] = "";
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return StrCat("ipv4:", text, ":", ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
    return StrCat("ipv4:", text, ":", ntohs(v6.sin6_port));
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  const std::string scope = v6.sin6_scope_id != 0 ? StrCat("%", v6.sin6_scope_id) : "";
  return StrCat("ipv6:[", text, scope, "]:", ntohs(v6.sin6_port));
}

Connections::Connections(int64_t limit)
    : descriptor_limit_(DescriptorLimit()),
      limit_(std::min(limit, descriptor_limit_)),
      strangers_limit_(std::max(kLeastStrangers, limit_ / 4)) {}

std::string Connections::Admit(int socket, const sockaddr_storage& peer, Clock::Time now) {
  const std::string text = PeerText(peer), address = AddressOf(text);
  MutexLock lock(mu_);
  if (const auto found = offenders_.find(address);
      found != offenders_.end() && now < found->second.shut_out_until) {
    return StrCat(address, " is shut out for a while");
  }
  if ((IsFull() || HasTooMany(address)) && now - last_look_ >= kBetweenLooks) {
    last_look_ = now;
    ForgetClosed();
    ForgetStrangers(now - kTimeToCall);
  }
  if (IsFull()) {
    return StrCat(limit_, " are open, as many as may be (",
                  limit_ < descriptor_limit_ ? "--max_connections"
                                             : "of all descriptors, which ulimit -n sets",
                  ")");
  }
  if (HasTooMany(address)) {
    return StrCat(address, " has ", strangers_limit_, " that make no call");
  }
  const ino_t inode = InodeOf(socket);
  open_[socket] = inode;
  if (strangers_.insert_or_assign(text, Stranger{socket, inode, now}).second) {
    ++strangers_of_[address];
    ++num_strangers_;
  }
  return "";
}

bool Connections::IsFull() const { return static_cast<int64_t>(open_.size()) >= limit_; }

bool Connections::HasTooMany(const std::string& address) const {
  const auto found = strangers_of_.find(address);
  return found != strangers_of_.end() && found->second >= strangers_limit_;
}

void Connections::Welcome(const std::string& peer) {
  MutexLock lock(mu_);
  const std::string text = Decoded(peer);
  if (strangers_.erase(text) > 0) CountOut(text);
}

std::string Connections::Refuse(const std::string& peer, Clock::Time now) {
  const std::string address = AddressOf(Decoded(peer));
  MutexLock lock(mu_);
  if (offenders_.size() > kMaxOffenders) {
    absl::erase_if(offenders_, [now](const auto& e) { return e.second.shut_out_until <= now; });
  }
  Offender& offender = offenders_.try_emplace(address, Offender{kRefusals, now, {}}).first->second;
  if (now < offender.shut_out_until) return "";
  const double seconds = std::chrono::duration<double>(now - offender.since).count();
  offender.refusals_left =
      std::min(kRefusals, offender.refusals_left + seconds * kRefusalsASecond) - 1;
  offender.since = now;
  if (offender.refusals_left > 0) return "";
  return ShutOut(address, "too many of its calls were refused", now);
}

std::string Connections::ShutOut(const std::string& address, std::string_view why,
                                 Clock::Time now) {
  offenders_[address].shut_out_until = now + kShutOut;
  for (const auto& [text, stranger] : strangers_) {
    if (AddressOf(text) != address || InodeOf(stranger.socket) != stranger.inode) continue;
    HangUpOn(stranger.socket);
  }
  return StrCat("hung up on ", address, " for ", kShutOut.count(), " s: ", why);
}

std::string Connections::Sweep(Clock::Time now) {
  MutexLock lock(mu_);
  ForgetStrangers(now - kTimeToCall);
  std::string flooding;
  for (auto& [text, stranger] : strangers_) {
    if (BytesReceived(stranger.socket) <= kBytes) continue;
    if (std::exchange(stranger.floods, true)) flooding = AddressOf(text);
  }
  absl::erase_if(offenders_, [now](const auto& entry) {
    return std::max(entry.second.since + kShutOut, entry.second.shut_out_until) < now;
  });
  if (flooding.empty()) return "";
  return ShutOut(flooding, "it sends much and makes no call that is let in", now);
}

int64_t Connections::num_open() {
  MutexLock lock(mu_);
  ForgetClosed();
  return static_cast<int64_t>(open_.size());
}

void Connections::ForgetClosed() {
  absl::erase_if(open_, [](const auto& entry) { return InodeOf(entry.first) != entry.second; });
}

void Connections::ForgetStrangers(Clock::Time before) {
  std::vector<std::string> gone;
  for (const auto& [text, stranger] : strangers_) {
    const bool open = InodeOf(stranger.socket) == stranger.inode;
    if (open && stranger.since > before) continue;
    if (open) HangUpOn(stranger.socket);
    gone.push_back(text);
  }
  for (const std::string& text : gone) {
    strangers_.erase(text);
    CountOut(text);
  }
}

void Connections::CountOut(const std::string& peer) {
  const auto of_address = strangers_of_.find(AddressOf(peer));
  if (--of_address->second == 0) strangers_of_.erase(of_address);
  --num_strangers_;
}

}  // namespace tenon
