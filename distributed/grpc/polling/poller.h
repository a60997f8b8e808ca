// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "distributed/grpc/polling/handover.h"
#include "distributed/grpc/polling/socket_poller.h"
#include "distributed/grpc/polling/spin_limit.h"
#include "runtime/device/thread_pool.h"

namespace tenon {

/// What happens when an operation of gRPC is over.
class Completion {
 public:
  virtual ~Completion() = default;
  /// Called once an operation, by the poller and never beside another one; must not block. What it
  /// defers is done after its turn.
  virtual void Complete(bool ok) = 0;

  /// The tag to start the operation with. To be taken last: what is written before is seen by
  /// Complete.
  void* tag() {
    GiveToGrpc(this);
    return this;
  }
};

/// Waits for the operations of a completion queue, whose tags are of Completions, on one thread of
/// a pool at a time, which asks for a while before it sleeps. gRPC's callback interface hands each
/// event through two more threads.
class Poller {
 public:
  /// The pool outlives the poller and has no other; so does the clock.
  Poller(std::unique_ptr<grpc::CompletionQueue> queue, ThreadPool& pool, Clock& clock);
  /// Waits for the operations that run: whoever started them must have cancelled them.
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  grpc::CompletionQueue& queue() { return *queue_; }
  /// Watches sockets beside the queue. What they have called comes in turn with Complete, never
  /// beside it. It begins with the first call.
  SocketPoller& sockets();
  /// The time by which those measure whose operations it waits for.
  Clock& clock() { return clock_; }
  /// Runs `start`, which starts an operation, before the next event of the queue is waited for; not
  /// on this thread if it has a task to run. To be called in Complete only, and not for sockets.
  void StartBeforeNext(std::function<void()> start) { starts_.push_back(std::move(start)); }
  /// Runs `task` soon, as an operation's end.
  void Post(std::function<void()> task) {
    PostAfter(std::chrono::milliseconds(0), std::move(task));
  }
  /// Has another thread of the pool run `task`, which may take a while; false, and `task`
  /// untouched, when none is free.
  bool SubmitIfFree(std::function<void()>& task) { return pool_.SubmitIfFree(task); }
  /// Runs `task` that much later, or as soon as the poller begins to end.
  void PostAfter(std::chrono::milliseconds delay, std::function<void()> task);

 private:
  /// Waits for an event; false after the last one.
  bool Next(void** tag, bool* ok);

  const std::unique_ptr<grpc::CompletionQueue> queue_;
  ThreadPool& pool_;
  Clock& clock_;
  std::vector<std::function<void()>> starts_;  // of the thread that polls
  SpinLimit spin_;                             // so is this
  Mutex turn_;                                 // held while Complete runs
  Mutex mu_;
  std::unique_ptr<SocketPoller> sockets_ ABSL_GUARDED_BY(mu_);  // null before the first call
  std::set<grpc::Alarm*> waiting_ ABSL_GUARDED_BY(mu_);         // for tasks of later
};

}  // namespace tenon
