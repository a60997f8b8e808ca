// SPDX-License-Identifier: Apache-2.0
#include "distributed/grpc/poller.h"

#include <absl/synchronization/mutex.h>
#include <grpcpp/alarm.h>

namespace tenon {
namespace {

/// An alarm that has rung already: the queue's way to run something on its thread.
class Posted final : public Completion {
 public:
  explicit Posted(std::function<void()> task) : task_(std::move(task)) {}
  void Start(grpc::CompletionQueue* queue) {
    alarm_.Set(queue, gpr_inf_past(GPR_CLOCK_REALTIME), tag());
  }
  void Complete(bool) override {
    task_();
    delete this;
  }

 private:
  const std::function<void()> task_;
  grpc::Alarm alarm_;
};

}  // namespace

Poller::Poller(std::unique_ptr<grpc::CompletionQueue> queue)
    : queue_(std::move(queue)), thread_([this] {
        // Builds of Abseil that distributions ship look for deadlocks at every lock gRPC takes.
        absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
        void* tag = nullptr;
        bool ok = false;
        while (queue_->Next(&tag, &ok)) {
          TakeFromGrpc(tag);
          static_cast<Completion*>(tag)->Complete(ok);
        }
      }) {}

Poller::~Poller() {
  queue_->Shutdown();
  thread_.join();
}

void Poller::Post(std::function<void()> task) {
  (new Posted(std::move(task)))->Start(queue_.get());
}

}  // namespace tenon
