// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/cancellation.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "distributed/protocol/worker_interface.h"

namespace tenon {

/// Something that a thread waits for and that may be given up. Thread-safe; shared with what may
/// still happen after the thread has stopped waiting.
class Countdown {
 public:
  /// One more thing to wait for.
  void Add() {
    MutexLock lock(mu_);
    ++left_;
  }
  void Done() {
    MutexLock lock(mu_);
    if (--left_ == 0) over_.NotifyAll();
  }
  void GiveUp() {
    MutexLock lock(mu_);
    given_up_ = true;
    over_.NotifyAll();
  }
  /// False when it was given up first.
  bool Wait() {
    MutexLock lock(mu_);
    while (left_ > 0 && !given_up_) over_.Wait(mu_);
    return left_ == 0;
  }

 private:
  Mutex mu_;
  CondVar over_;
  int left_ ABSL_GUARDED_BY(mu_) = 0;
  bool given_up_ ABSL_GUARDED_BY(mu_) = false;
};

/// Waits until all has been counted down: OK; or until `cancellation`, unless null, is cancelled:
/// its Status.
inline Status AwaitCountdown(const std::shared_ptr<Countdown>& countdown,
                             Cancellation* cancellation) {
  Cancellation given_up;
  const CancellationLink link(cancellation, given_up);
  const auto token = given_up.Register([countdown](const Status&) { countdown->GiveUp(); });
  if (token == Cancellation::kAlreadyCancelled) return given_up.status();
  return countdown->Wait() ? OkStatus() : given_up.status();
}

/// Waits for `pause`, or less when cancelled.
inline Status Pause(Clock& clock, Clock::Duration pause, Cancellation* cancellation) {
  auto countdown = std::make_shared<Countdown>();
  countdown->Add();
  const Clock::Timer timer = clock.CallAfter(pause, [countdown] { countdown->Done(); });
  const Status status = AwaitCountdown(countdown, cancellation);
  clock.CancelTimer(timer);
  return status;
}

/// Calls of one method of several workers at the same time. Used by one thread, which may stop
/// waiting while they run: they end by themselves then.
template <typename Request, typename Response>
class WorkerCalls {
 public:
  using Method = void (WorkerInterface::*)(const Request&, Response*, WorkerInterface::Done);

  explicit WorkerCalls(Method method) : method_(method) {}

  void Start(std::shared_ptr<WorkerInterface> worker, Request request) {
    auto call = std::make_shared<Call>();
    call->worker = std::move(worker);
    call->request = std::move(request);
    calls_.push_back(call);
    countdown_->Add();
    WorkerInterface& target = *call->worker;
    (target.*method_)(call->request, &call->response,
                      [call, countdown = countdown_](Status status) {
                        call->End(std::move(status));
                        countdown->Done();
                      });
  }
  /// OK when all calls have ended, well or not; otherwise the cancellation's Status, and nothing of
  /// what follows may be called.
  Status Wait(Cancellation* cancellation) { return AwaitCountdown(countdown_, cancellation); }

  /// Calls `then(i, status, response)` for each call that has ended, or as soon as it does; for who
  /// has stopped waiting.
  using Then = std::function<void(size_t i, const Status& status, const Response& response)>;
  void WhenEnded(const Then& then) {
    for (size_t i = 0; i < calls_.size(); ++i) calls_[i]->Follow(i, then);
  }

  /// The number of calls; `i` counts them in the order of their start.
  size_t size() const { return calls_.size(); }
  const Status& status(size_t i) const { return calls_[i]->status; }
  Response& response(size_t i) { return calls_[i]->response; }

 private:
  struct Call {
    void End(Status s) {
      std::function<void()> then;
      {
        MutexLock lock(mu);
        status = std::move(s);
        ended = true;
        then = std::move(next);
      }
      if (then) then();
    }
    void Follow(size_t i, const Then& then) {
      {
        MutexLock lock(mu);
        if (!ended) {
          next = [this, i, then] { then(i, status, response); };
          return;
        }
      }
      then(i, status, response);
    }

    std::shared_ptr<WorkerInterface> worker;
    Request request;
    Response response;
    Status status;  // set once, before `ended`
    Mutex mu;
    bool ended ABSL_GUARDED_BY(mu) = false;
    std::function<void()> next ABSL_GUARDED_BY(mu);
  };

  const Method method_;
  const std::shared_ptr<Countdown> countdown_ = std::make_shared<Countdown>();
  std::vector<std::shared_ptr<Call>> calls_;
};

}  // namespace tenon
