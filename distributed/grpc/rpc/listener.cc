// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/listener.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/strings.h"
#include "distributed/grpc/rpc/host_address.h"
#include "distributed/protocol/limits.h"

namespace tenon {
namespace {

/// How long what was sent may go unacknowledged, as the keepalive of the channels.
constexpr int kUnacknowledgedMs = 20'000;
/// With the port left open, another address of the host may have it taken.
constexpr int kPortAttempts = 20;
/// Where the system is out of something, before it is asked again.
constexpr std::chrono::milliseconds kPause{100};

void SetOption(int socket, int level, int option, int value) {
  // Without it the connection still works.
  static_cast<void>(setsockopt(socket, level, option, &value, sizeof(value)));
}

/// A socket that listens at `address`, or -1 with errno. All addresses of IPv6 are those of IPv4
/// too.
int ListenAt(HostAddress address, int port) {
  address.set_port(port);
  const int fd = socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  // A server that has just ended may be followed at once.
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.is_v6()) SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, address.IsAny() ? 0 : 1);
  if (bind(fd, address.data(), address.size()) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int PortOf(int socket) {
  sockaddr_storage at{};
  socklen_t size = sizeof(at);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  return getsockname(socket, address, &size) == 0 ? HostAddress(address, size).port() : 0;
}

/// Listens at all addresses with one port: 0, or the errno of what is in the way.
int ListenAtAll(const std::vector<HostAddress>& addresses, int port, std::vector<int>* sockets) {
  int error = EADDRNOTAVAIL;
  for (const HostAddress& address : addresses) {
    const int at_port = sockets->empty() ? port : PortOf(sockets->front());
    int socket = address.IsAny() ? ListenAt(HostAddress::Any(AF_INET6), at_port) : -1;
    // A machine may have no IPv6.
    if (socket < 0) socket = ListenAt(address, at_port);
    if (socket >= 0) {
      sockets->push_back(socket);
      continue;
    }
    error = errno;
    // A name may have an address that the machine has not.
    if (error != EADDRNOTAVAIL && error != EAFNOSUPPORT) break;
  }
  const bool listens = !sockets->empty() && (error == EADDRNOTAVAIL || error == EAFNOSUPPORT);
  if (listens) return 0;
  for (const int socket : *sockets) close(socket);
  sockets->clear();
  return error;
}

}  // namespace

Listener::Listener(int64_t max_connections, Clock& clock,
                   std::function<void(const std::string&)> notice)
    : clock_(clock), connections_(max_connections), notice_(std::move(notice)) {}

Listener::~Listener() { Stop(); }

StatusOr<int> Listener::Listen(const std::string& host, int port, Take take) {
  const auto addresses = ResolveHost(host);
  if (!addresses.ok()) {
    return Unavailable("cannot listen at ", host, ":", port, ": ", addresses.status().message());
  }
  std::vector<int> sockets;
  int error = EADDRINUSE;
  for (int i = 0; error == EADDRINUSE && i < (port == 0 ? kPortAttempts : 1); ++i) {
    error = ListenAtAll(*addresses, port, &sockets);
  }
  if (error != 0) {
    return Unavailable(
        "cannot listen at ", host, ":", port, ": ", std::strerror(error),
        error == EADDRNOTAVAIL ? ": no network interface of this machine has it" : "");
  }
  for (const int socket : sockets) {
    polled_.push_back({socket, POLLIN, 0});
    takers_.push_back(take);
  }
  return PortOf(sockets.front());
}

Status Listener::Start() {
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0) return ResourceExhausted("cannot take connections: ", std::strerror(errno));
  spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  polled_.push_back({stop_, POLLIN, 0});
  thread_ = std::jthread([this] { Run(); });
  return OkStatus();
}

void Listener::Stop() {
  if (thread_.joinable()) {
    static_cast<void>(eventfd_write(stop_, 1));
    thread_.join();
  }
  for (const pollfd& polled : polled_) close(polled.fd);
  polled_.clear();
  takers_.clear();
  if (spare_ >= 0) close(std::exchange(spare_, -1));
}

void Listener::Run() {
  while (true) {
    const int limit = connections_.AllAreWelcome() ? -1 : Connections::kBetweenSweeps.count();
    if (poll(polled_.data(), polled_.size(), limit) < 0) {
      if (errno != EINTR) clock_.SleepFor(kPause);
      continue;
    }
    if (polled_.back().revents != 0) return;
    for (size_t i = 0; i < takers_.size(); ++i) {
      if (polled_[i].revents != 0) AcceptFrom(polled_[i].fd, takers_[i]);
    }
    if (const Clock::Time now = clock_.Now(); now >= next_sweep_) {
      const std::string line = connections_.Sweep(now);
      if (!line.empty() && notice_ != nullptr) notice_(line);
      next_sweep_ = now + Connections::kBetweenSweeps;
    }
  }
}

void Listener::AcceptFrom(int listening, const Take& take) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  const int socket =
      accept4(listening, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) {
    if (errno == EMFILE || errno == ENFILE) {
      // The spare descriptor is for hanging up on whom there is none left for.
      const std::string why = StrCat("there is no descriptor left (", std::strerror(errno), ")");
      if (spare_ >= 0) close(spare_);
      const int refused = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      if (refused >= 0) close(refused);
      spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (refused >= 0) return NoticeRefusal(why);
      clock_.SleepFor(kPause);  // another thread was faster
    } else if (errno == ENOBUFS || errno == ENOMEM) {
      clock_.SleepFor(kPause);
    }
    return;  // the client may be gone already
  }
  if (const std::string why = connections_.Admit(socket, peer, clock_.Now()); !why.empty()) {
    close(socket);
    return NoticeRefusal(why);
  }
  SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
  take(socket);
}

void Listener::LetIn(const grpc::ServerContextBase& call) {
  if (!connections_.AllAreWelcome()) connections_.Welcome(call.peer());
}

void Listener::Refused(const grpc::ServerContextBase& call) {
  const Clock::Time now = clock_.Now();
  std::string line = connections_.Refuse(call.peer(), now);
  if (line.empty() && TakeNoticeOfCalls(now)) {
    line = StrCat("refused a call from ", call.peer(), ": it does not carry this job's token");
  }
  if (!line.empty() && notice_ != nullptr) notice_(line);
}

bool Listener::TakeNoticeOfCalls(Clock::Time now) {
  MutexLock lock(mu_);
  if (now < next_notice_of_calls_) return false;
  next_notice_of_calls_ = now + kNoticePause;
  return true;
}

void Listener::NoticeRefusal(const std::string& why) {
  ++num_refused_;
  const Clock::Time now = clock_.Now();
  if (notice_ == nullptr || now - last_notice_ < kNoticePause) return;
  notice_(StrCat("refused ", num_refused_,
                 num_refused_ == 1 ? " connection: " : " connections: ", why));
  last_notice_ = now;
  num_refused_ = 0;
}

}  // namespace tenon
