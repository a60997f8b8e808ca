// SPDX-License-Identifier: Apache-2.0
#include "core/base/cancellation.h"

namespace tenon {
namespace {

/// The address of a thread-local object names the thread.
const void* ThisThread() {
  static thread_local char id;
  return &id;
}

}  // namespace

Status Cancellation::status() const {
  if (!cancelled()) return OkStatus();
  MutexLock lock(mu_);
  return why_;
}

Cancellation::Token Cancellation::Register(Callback callback) {
  MutexLock lock(mu_);
  if (!why_.ok()) return kAlreadyCancelled;
  const Token token = next_++;
  callbacks_.emplace(token, std::move(callback));
  return token;
}

bool Cancellation::Deregister(Token token) {
  MutexLock lock(mu_);
  if (callbacks_.erase(token) > 0) return true;
  while (running_ == token && cancelling_thread_ != ThisThread()) done_.Wait(mu_);
  return false;
}

void Cancellation::Cancel(const Status& why) {
  TENON_CHECK(!why.ok());
  mu_.Lock();
  if (!why_.ok()) return mu_.Unlock();
  why_ = why;
  cancelled_.store(true, std::memory_order_release);
  cancelling_thread_ = ThisThread();
  // One at a time, so that a callback may deregister another one.
  while (!callbacks_.empty()) {
    const auto next = callbacks_.begin();
    running_ = next->first;
    Callback callback = std::move(next->second);
    callbacks_.erase(next);
    mu_.Unlock();
    callback(why);
    callback = nullptr;  // what it holds dies outside the lock
    mu_.Lock();
    running_ = kNone;
    done_.NotifyAll();
  }
  cancelling_thread_ = nullptr;
  mu_.Unlock();
}

}  // namespace tenon
