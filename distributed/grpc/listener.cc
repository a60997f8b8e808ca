// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "core/strings.h"
#include "distributed/limits.h"

namespace tenon {
namespace {

/// How long what was sent may go unacknowledged, as the keepalive of the channels.
constexpr int kUnacknowledgedMs = 20'000;
/// With the port left open, another address of the host may have it taken.
constexpr int kPortAttempts = 20;
/// With all connections taken, each one more would have us look at all of them.
constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr std::chrono::milliseconds kWithoutMemory{100};

int64_t DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT64_MAX;
  return static_cast<int64_t>(limit.rlim_cur / 4 * 3);
}

void SetOption(int socket, int level, int option, int value) {
  // Without it the connection still works.
  static_cast<void>(setsockopt(socket, level, option, &value, sizeof(value)));
}

/// A socket that listens at `address` with its port replaced, or -1 with errno.
int ListenAt(const addrinfo& address, int port) {
  sockaddr_storage at{};
  std::memcpy(&at, address.ai_addr, address.ai_addrlen);
  bool is_any = false;
  if (address.ai_family == AF_INET6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&at);
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    is_any = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
  } else {
    reinterpret_cast<sockaddr_in*>(&at)->sin_port = htons(static_cast<uint16_t>(port));
  }
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  // A server that has just ended may be followed at once.
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) SetOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, is_any ? 0 : 1);
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), address.ai_addrlen) == 0 &&
      listen(fd, SOMAXCONN) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int PortOf(int socket) {
  sockaddr_storage at{};
  socklen_t size = sizeof(at);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0) return 0;
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&at)->sin6_port
                                        : reinterpret_cast<sockaddr_in*>(&at)->sin_port);
}

/// The inode of an open socket; 0 of anything else.
ino_t InodeOf(int descriptor) {
  struct stat about {};
  return fstat(descriptor, &about) == 0 && S_ISSOCK(about.st_mode) ? about.st_ino : 0;
}

}  // namespace

Listener::Listener(int64_t max_connections, std::function<void(const std::string&)> notice)
    : max_connections_(std::min(max_connections, DescriptorLimit())), notice_(std::move(notice)) {}

Listener::~Listener() { Stop(); }

StatusOr<int> Listener::Listen(const std::string& host, int port, Take take) {
  std::vector<int> sockets;
  std::string why;
  for (int i = 0; sockets.empty() && i < (port == 0 ? kPortAttempts : 1); ++i) {
    if (Bind(host, port, &sockets, &why)) break;
    for (const int socket : sockets) close(socket);
    sockets.clear();
  }
  if (sockets.empty()) return Unavailable("cannot listen at ", host, ":", port, ": ", why);
  for (const int socket : sockets) {
    polled_.push_back({socket, POLLIN, 0});
    takers_.push_back(take);
  }
  return PortOf(sockets.front());
}

bool Listener::Bind(const std::string& host, int port, std::vector<int>* sockets,
                    std::string* why) {
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  const std::string name = in_brackets ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(name.c_str(), nullptr, &hints, &found); error != 0) {
    *why = gai_strerror(error);
    return false;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
    const int socket = ListenAt(*a, sockets->empty() ? port : PortOf(sockets->front()));
    if (socket >= 0) {
      sockets->push_back(socket);
      continue;
    }
    *why = std::strerror(errno);
    // A name may have an IPv6 address where the machine has no IPv6.
    if (errno == EADDRINUSE || errno == EACCES) return false;
  }
  return !sockets->empty();
}

void Listener::Start() {
  stop_ = eventfd(0, EFD_CLOEXEC);
  spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  polled_.push_back({stop_, POLLIN, 0});
  thread_ = std::jthread([this] { Run(); });
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
    if (poll(polled_.data(), polled_.size(), -1) < 0 && errno != EINTR) return;
    if (polled_.back().revents != 0) return;
    for (size_t i = 0; i < takers_.size(); ++i) {
      if (polled_[i].revents != 0) AcceptFrom(polled_[i].fd, takers_[i]);
    }
  }
}

void Listener::AcceptFrom(int listening, const Take& take) {
  const int socket = accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) {
    if (errno == EMFILE || errno == ENFILE) {
      // The spare descriptor is for hanging up on whom there is none left for.
      const std::string why = StrCat("there is no descriptor left (", std::strerror(errno), ")");
      close(spare_);
      const int refused = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      if (refused >= 0) close(refused);
      spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
      NoticeRefusal(why);
    } else if (errno == ENOBUFS || errno == ENOMEM) {
      std::this_thread::sleep_for(kWithoutMemory);
    }
    return;  // the client may be gone already
  }
  if (IsFull()) {
    close(socket);
    return NoticeRefusal(StrCat(max_connections_, " are open, as many as may be (--max_connections)"));
  }
  SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
  {
    MutexLock lock(mu_);
    open_[socket] = InodeOf(socket);
  }
  take(socket);
}

bool Listener::IsFull() {
  const Clock::time_point now = Clock::now();
  MutexLock lock(mu_);
  if (static_cast<int64_t>(open_.size()) < max_connections_) return false;
  if (now - last_look_ < kBetweenLooks) return true;
  last_look_ = now;
  ForgetClosed();
  return static_cast<int64_t>(open_.size()) >= max_connections_;
}

void Listener::NoticeRefusal(const std::string& why) {
  ++num_refused_;
  const Clock::time_point now = Clock::now();
  if (notice_ == nullptr || now - last_notice_ < kNoticePause) return;
  notice_(StrCat("refused ", num_refused_, num_refused_ == 1 ? " connection: " : " connections: ",
                 why));
  last_notice_ = now;
  num_refused_ = 0;
}

int64_t Listener::num_connections() {
  MutexLock lock(mu_);
  ForgetClosed();
  return static_cast<int64_t>(open_.size());
}

void Listener::ForgetClosed() {
  absl::erase_if(open_, [](const auto& entry) { return InodeOf(entry.first) != entry.second; });
}

}  // namespace tenon
