// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/rpc/poller.h"

#include <absl/synchronization/mutex.h>
#include <sched.h>

#include "runtime/device/deferral.h"
#include "runtime/device/machine_clock.h"

namespace tenon {
namespace {

/// An alarm: the queue's way to run something where it is polled.
class Posted final : public Completion {
 public:
  explicit Posted(std::function<void(grpc::Alarm*)> task) : task_(std::move(task)) {}
  grpc::Alarm* alarm() { return &alarm_; }
  void Start(grpc::CompletionQueue* queue, std::chrono::milliseconds delay) {
    const gpr_timespec wait = gpr_time_from_millis(delay.count(), GPR_TIMESPAN);
    alarm_.Set(queue,
               delay.count() == 0 ? gpr_inf_past(GPR_CLOCK_REALTIME)
                                  : gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), wait),
               tag());
  }
  void Complete(bool) override {
    task_(&alarm_);
    delete this;
  }

 private:
  const std::function<void(grpc::Alarm*)> task_;
  grpc::Alarm alarm_;
};

}  // namespace

Poller::Poller(std::unique_ptr<grpc::CompletionQueue> queue, ThreadPool& pool, Clock& clock)
    : queue_(std::move(queue)), pool_(pool), clock_(clock) {
  // Builds of Abseil that distributions ship look for deadlocks at every lock gRPC takes.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  pool_.StartWatching([this] {
    for (const auto& start : starts_) start();
    starts_.clear();
    void* tag = nullptr;
    bool ok = false;
    if (!Next(&tag, &ok)) return false;
    TakeFromGrpc(tag);
    const DeferralScope scope;
    static_cast<Completion*>(tag)->Complete(ok);
    return true;
  });
}

Poller::~Poller() {
  {
    MutexLock lock(mu_);
    for (grpc::Alarm* const alarm : waiting_) alarm->Cancel();
  }
  queue_->Shutdown();
  pool_.WaitUntilWatched();
}

bool Poller::Next(void** tag, bool* ok) {
  const Clock::Time begin = MachineClock().Now();
  const Clock::Duration limit = spin_.At(begin);
  for (Clock::Time now = begin; now - begin < limit;) {
    const auto next = queue_->AsyncNext(tag, ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
    if (next == grpc::CompletionQueue::SHUTDOWN) return false;
    if (next == grpc::CompletionQueue::GOT_EVENT) {
      spin_.Learn(now - begin);
      return true;
    }
    const Clock::Time before = MachineClock().Now();
    sched_yield();
    now = MachineClock().Now();
    if (now - before >= SpinLimit::kTurnOfOthers) {
      spin_.MakeWay(now);
      break;
    }
  }
  const bool more = queue_->Next(tag, ok);
  spin_.Learn(MachineClock().Now() - begin);
  return more;
}

void Poller::PostAfter(std::chrono::milliseconds delay, std::function<void()> task) {
  auto* const posted = new Posted([this, task = std::move(task)](grpc::Alarm* alarm) {
    {
      MutexLock lock(mu_);
      waiting_.erase(alarm);
    }
    task();
  });
  MutexLock lock(mu_);
  waiting_.insert(posted->alarm());
  posted->Start(queue_.get(), delay);
}

}  // namespace tenon
