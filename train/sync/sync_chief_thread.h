// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/base/mutex.h"
#include "core/base/thread_starter.h"
#include "train/sync/sync_chief.h"

namespace tenon {

/// Runs a SyncChief, which has been started, until it is to stop, on a thread of its own.
class SyncChiefThread {
 public:
  /// `chief` and what it uses must outlive it.
  explicit SyncChiefThread(SyncChief& chief) : chief_(chief) {}
  /// Begins; once.
  Status Start(ThreadStarter& threads) {
    TENON_ASSIGN_OR_RETURN(thread_, threads.Start([this] { Run(); }));
    return OkStatus();
  }
  ~SyncChiefThread() { Stop().IgnoreError(); }
  /// Has the chief tell that training is over, unless it leaves, and waits for the thread: why
  /// that, or what the chief did before, has failed.
  Status Stop() {
    chief_.RequestStop();
    thread_ = nullptr;
    return status();
  }
  /// Why the chief has ended by itself; OK while it runs.
  Status status() const {
    MutexLock lock(mu_);
    return status_;
  }

 private:
  void Run() {
    Status status;
    while (status.ok() && !chief_.is_to_stop()) status = chief_.Round();
    if (chief_.is_to_stop()) status = chief_.Finish();
    MutexLock lock(mu_);
    status_ = status;
  }

  SyncChief& chief_;
  mutable Mutex mu_;
  Status status_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<ThreadStarter::Work> thread_;  // last: it uses the others
};

}  // namespace tenon
