// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"

namespace tenon {

/// A mutex whose holder may wait for other tasks for a long time, so that who wants it too must be
/// able to give up. Slower than Mutex. Thread-safe.
class ABSL_LOCKABLE CancellableMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    MutexLock lock(mu_);
    while (held_) changed_.Wait(mu_);
    held_ = true;
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    MutexLock lock(mu_);
    return !std::exchange(held_, true);
  }
  /// False, without the lock, when `cancellation` has been cancelled.
  bool LockUnless(Cancellation& cancellation) ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    const Cancellation::Token token = cancellation.Register([this](const Status&) {
      MutexLock lock(mu_);
      changed_.NotifyAll();
    });
    bool taken = false;
    {
      MutexLock lock(mu_);
      while (held_ && !cancellation.cancelled()) changed_.Wait(mu_);
      taken = !cancellation.cancelled();
      held_ |= taken;
    }
    if (token != Cancellation::kAlreadyCancelled) cancellation.Deregister(token);
    return taken;
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    MutexLock lock(mu_);
    held_ = false;
    changed_.NotifyAll();
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mu_) = false;
};

/// Gives back, at the end of its scope, the lock that is held at its beginning.
class ABSL_SCOPED_LOCKABLE HeldLock {
 public:
  explicit HeldLock(CancellableMutex& mu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) : mu_(mu) {}
  ~HeldLock() ABSL_UNLOCK_FUNCTION() { mu_.Unlock(); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  CancellableMutex& mu_;
};

}  // namespace tenon
