// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/polling/socket_poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/exceptions.h"
#include "runtime/device/deferral.h"

namespace tenon {
namespace {

constexpr uint64_t kEnd = 0;  // the number of the eventfd

}  // namespace

SocketPoller::SocketPoller(ThreadPool& pool, Mutex& turn)
    : turn_(turn), epoll_(epoll_create1(EPOLL_CLOEXEC)), end_(eventfd(0, EFD_CLOEXEC)) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kEnd;
  watches_ = epoll_ctl(epoll_, EPOLL_CTL_ADD, end_, &event) == 0;
  if (!watches_) return;
  watches_ = CatchExceptions([&] {
               pool.StartWatching([this] { return Watch(); });
               return OkStatus();
             }).ok();
}

SocketPoller::~SocketPoller() {
  close(end_);
  close(epoll_);
}

void SocketPoller::End() { eventfd_write(end_, 1); }

uint64_t SocketPoller::Add(int socket, Ready ready) {
  if (!watches_) return 0;
  MutexLock lock(mu_);
  const uint64_t number = ++last_number_;
  epoll_event event = {};
  event.data.u64 = number;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) return 0;
  sockets_.emplace(number, Socket{socket, 0, std::make_shared<const Ready>(std::move(ready))});
  return number;
}

void SocketPoller::SetReads(uint64_t number, bool reads) { SetEvent(number, EPOLLIN, reads); }

void SocketPoller::SetWrites(uint64_t number, bool writes) { SetEvent(number, EPOLLOUT, writes); }

void SocketPoller::SetEvent(uint64_t number, uint32_t event, bool wanted) {
  MutexLock lock(mu_);
  const auto found = sockets_.find(number);
  if (found == sockets_.end()) return;
  Socket& socket = found->second;
  const uint32_t events = wanted ? socket.events | event : socket.events & ~event;
  if (events == socket.events) return;
  socket.events = events;
  epoll_event change = {};
  change.events = events;
  change.data.u64 = number;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, socket.socket, &change);
}

void SocketPoller::Remove(uint64_t number) {
  MutexLock lock(mu_);
  const auto found = sockets_.find(number);
  if (found == sockets_.end()) return;
  epoll_ctl(epoll_, EPOLL_CTL_DEL, found->second.socket, nullptr);
  sockets_.erase(found);
}

bool SocketPoller::Watch() {
  // One event at a time: the others go on waiting, and the system gives them in turn.
  epoll_event event = {};
  const bool has_come = WaitAwake(
      spin_, [&] { return epoll_wait(epoll_, &event, 1, 0) > 0; },
      [&] {
        int count = 0;
        while ((count = epoll_wait(epoll_, &event, 1, -1)) < 0 && errno == EINTR) {
        }
        return count > 0;
      });
  // The event is packed: nothing may refer to what is in it.
  const uint64_t number = event.data.u64;
  if (!has_come || number == kEnd) return false;
  const DeferralScope scope;
  MutexLock turn(turn_);
  std::shared_ptr<const Ready> ready;
  {
    MutexLock lock(mu_);
    const auto found = sockets_.find(number);
    if (found == sockets_.end()) return true;
    ready = found->second.ready;
  }
  constexpr uint32_t kEnded = EPOLLHUP | EPOLLERR;
  (*ready)((event.events & (EPOLLIN | kEnded)) != 0, (event.events & (EPOLLOUT | kEnded)) != 0);
  return true;
}

}  // namespace tenon
