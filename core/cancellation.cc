// SPDX-License-Identifier: Apache-2.0
#include "core/cancellation.h"

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
  while (running_ && cancelling_thread_.load() != ThisThread()) done_.Wait(mu_);
  return false;
}

void Cancellation::Cancel(const Status& why) {
  TENON_CHECK(!why.ok());
  flat_hash_map<Token, Callback> callbacks;
  {
    MutexLock lock(mu_);
    if (!why_.ok()) return;
    why_ = why;
    cancelled_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
    running_ = true;
    cancelling_thread_.store(ThisThread());
  }
  for (auto& [token, callback] : callbacks) callback(why);
  MutexLock lock(mu_);
  running_ = false;
  cancelling_thread_.store(nullptr);
  done_.NotifyAll();
}

}  // namespace tenon
