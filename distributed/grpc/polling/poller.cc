// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/polling/poller.h"

#include <absl/synchronization/mutex.h>

#include "runtime/device/deferral.h"

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
    MutexLock turn(turn_);
    static_cast<Completion*>(tag)->Complete(ok);
    return true;
  });
}

Poller::~Poller() {
  {
    MutexLock lock(mu_);
    for (grpc::Alarm* const alarm : waiting_) alarm->Cancel();
    if (sockets_ != nullptr) sockets_->End();
  }
  queue_->Shutdown();
  pool_.WaitUntilWatched();
}

bool Poller::Next(void** tag, bool* ok) {
  // After the last event Next returns at once.
  return WaitAwake(
      spin_,
      [&] {
        return queue_->AsyncNext(tag, ok, gpr_inf_past(GPR_CLOCK_MONOTONIC)) ==
               grpc::CompletionQueue::GOT_EVENT;
      },
      [&] { return queue_->Next(tag, ok); });
}

SocketPoller& Poller::sockets() {
  MutexLock lock(mu_);
  if (sockets_ == nullptr) sockets_ = std::make_unique<SocketPoller>(pool_, turn_);
  return *sockets_;
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
