// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/blocking_calls.h"

#include <thread>

#include "core/base/exceptions.h"

namespace tenon {

BlockingCalls::~BlockingCalls() {
  MutexLock lock(mu_);
  ending_ = true;
  changed_.NotifyAll();
  while (threads_ > 0) none_left_.Wait(mu_);
}

Status BlockingCalls::Run(std::function<void()> call) {
  MutexLock lock(mu_);
  if (waiting_.size() >= kMaxWaiting) {
    return ResourceExhausted("the server has ", kMaxThreads, " calls at work that may block, and ",
                             waiting_.size(), " that wait for these; try again later");
  }
  waiting_.push_back(std::move(call));
  if (idle_ >= waiting_.size()) {
    changed_.NotifyOne();
    return OkStatus();
  }
  if (threads_ == kMaxThreads) return OkStatus();
  const Status started = CatchExceptions([this] {
    std::thread([this] { Work(); }).detach();
    return OkStatus();
  });
  if (started.ok()) {
    ++threads_;
  } else if (threads_ == 0) {
    waiting_.pop_back();
    return started;
  }
  return OkStatus();  // without a new thread, one of the others comes to it
}

void BlockingCalls::Work() {
  mu_.Lock();
  while (true) {
    const Clock::Time until = clock_.Now() + kIdle;
    ++idle_;
    while (waiting_.empty() && !ending_ && clock_.WaitUntil(changed_, mu_, until)) {
    }
    --idle_;
    if (waiting_.empty()) break;
    std::function<void()> call = std::move(waiting_.front());
    waiting_.pop_front();
    mu_.Unlock();
    call();
    call = nullptr;  // what it holds dies outside the lock
    mu_.Lock();
  }
  --threads_;
  // Under the lock: the object may be gone as soon as it is free.
  if (threads_ == 0) none_left_.NotifyAll();
  mu_.Unlock();
}

}  // namespace tenon
