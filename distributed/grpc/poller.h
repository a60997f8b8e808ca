// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/completion_queue.h>

#include <functional>
#include <memory>
#include <thread>

#include "distributed/grpc/handover.h"

namespace tenon {

/// What happens when an operation of gRPC is over.
class Completion {
 public:
  virtual ~Completion() = default;
  /// Called once an operation, on the poller's thread; must not block.
  virtual void Complete(bool ok) = 0;

  /// The tag to start the operation with. To be taken last: what is written before is seen by
  /// Complete.
  void* tag() {
    GiveToGrpc(this);
    return this;
  }
};

/// One thread that waits for the operations of a completion queue, whose tags are of Completions.
/// gRPC's callback interface hands each event through two more threads.
class Poller {
 public:
  explicit Poller(std::unique_ptr<grpc::CompletionQueue> queue);
  /// Waits for the operations that run: whoever started them must have cancelled them.
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  grpc::CompletionQueue& queue() { return *queue_; }
  /// Runs `task` on the thread, soon.
  void Post(std::function<void()> task);

 private:
  const std::unique_ptr<grpc::CompletionQueue> queue_;
  std::thread thread_;
};

}  // namespace tenon
