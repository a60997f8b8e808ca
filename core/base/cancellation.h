// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "core/base/mutex.h"
#include "core/base/status.h"

namespace tenon {

/// Tells the blocked operations of a step to give up. Thread-safe. The first Cancel wins; its
/// Status says why and is what the callbacks get.
class Cancellation {
 public:
  using Callback = std::function<void(const Status& why)>;
  using Token = int64_t;
  static constexpr Token kAlreadyCancelled = -1;

  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  /// OK while not cancelled.
  Status status() const;

  /// Registers `callback`, to run once on Cancel, from the cancelling thread. kAlreadyCancelled
  /// when it is too late: then the callback is not kept and will not run.
  Token Register(Callback callback);
  /// After return the callback does not run and is not running (unless called from it). False when
  /// it has run, or is running. May be called from another callback.
  bool Deregister(Token token);

  /// Runs every callback with `why`, which must not be OK. Later calls do nothing.
  void Cancel(const Status& why);

 private:
  static constexpr Token kNone = -2;

  std::atomic<bool> cancelled_{false};
  mutable Mutex mu_;
  CondVar done_;
  Status why_ ABSL_GUARDED_BY(mu_);
  /// The callback that runs, and the thread that cancels.
  Token running_ ABSL_GUARDED_BY(mu_) = kNone;
  const void* cancelling_thread_ ABSL_GUARDED_BY(mu_) = nullptr;
  Token next_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<Token, Callback> callbacks_ ABSL_GUARDED_BY(mu_);
};

/// While it lives, cancelling `source` cancels `target` too. Both outlive it; `source` may be null.
/// A shared target lives while it is cancelled: what its callbacks do may end this link and the
/// last other owner.
/// REQUIRES: its destructor is not called with a lock that a callback of `target` takes.
class CancellationLink {
 public:
  CancellationLink(Cancellation* source, Cancellation& target) : source_(source) {
    if (source == nullptr) return;
    token_ = source->Register([&target](const Status& why) { target.Cancel(why); });
    if (token_ == Cancellation::kAlreadyCancelled) target.Cancel(source->status());
  }
  CancellationLink(Cancellation* source, const std::shared_ptr<Cancellation>& target)
      : source_(source) {
    if (source == nullptr) return;
    token_ = source->Register([target](const Status& why) { target->Cancel(why); });
    if (token_ == Cancellation::kAlreadyCancelled) target->Cancel(source->status());
  }
  ~CancellationLink() {
    if (token_ != Cancellation::kAlreadyCancelled) source_->Deregister(token_);
  }
  CancellationLink(const CancellationLink&) = delete;
  CancellationLink& operator=(const CancellationLink&) = delete;

 private:
  Cancellation* const source_;
  Cancellation::Token token_ = Cancellation::kAlreadyCancelled;
};

}  // namespace tenon
