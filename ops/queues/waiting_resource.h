// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <list>
#include <memory>
#include <string_view>
#include <utility>

#include "core/base/mutex.h"
#include "core/memory/memory_account.h"
#include "core/op/kernel.h"
#include "core/tensor/resource.h"

// Operations of steps on one resource that wait for each other: enqueues for room, dequeues for
// elements. No thread is blocked meanwhile.

namespace tenon {

/// Fails a kernel that has a `timeout_ms` other than -1, which TensorFlow's queues do not know
/// either.
void RefuseTimeout(KernelConstruction& c);

/// What one waiting kernel wants of a resource. Attempt and TakeBack run under the resource's lock,
/// Finish outside; none of them is interrupted.
class WaitingOperation {
 public:
  enum class Progress { kNone, kSome, kDone };

  virtual ~WaitingOperation() = default;
  /// As "Dequeue operation was cancelled" says it.
  virtual std::string_view name() const = 0;
  /// Does as much as can be done now. kSome: it is not done, but others may be able to go on. An
  /// error ends it.
  virtual StatusOr<Progress> Attempt() = 0;
  /// Undoes what attempts have done, when it is cancelled.
  virtual void TakeBack() {}
  /// After kDone: sets the outputs of the kernel.
  virtual Status Finish() { return OkStatus(); }
};

/// A resource with a few lines of waiting operations. In each the first is served first, and the
/// others wait for it, unless the resource says that they need not. Thread-safe. Lives in a
/// shared_ptr: who waits for it keeps it.
class WaitingResource : public Resource, public std::enable_shared_from_this<WaitingResource> {
 public:
  static constexpr int kLines = 3;

  /// Runs `operation` as soon as those before it in its line have ended and it can be done, then
  /// `done`, with its error if it has one, from whatever thread. Cancelled when the step is.
  void Start(int line, std::unique_ptr<WaitingOperation> operation, const KernelContext& ctx,
             Kernel::Done done);

 protected:
  /// Whether operations of a line wait for those before them.
  virtual bool IsInOrder(int /*line*/) const { return true; }
  /// Runs `change()` under the lock and lets those go on who then can; gives its result.
  template <typename Change>
  auto Apply(Change&& change) {
    Waitings ended;
    auto result = [&] {
      MutexLock lock(mu_);
      auto given = std::forward<Change>(change)();
      Advance(&ended);
      return given;
    }();
    End(std::move(ended));
    return result;
  }
  /// Ends all operations of a line as if their steps were cancelled for that reason. In Apply only.
  void CancelLine(int line, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;

 private:
  struct Waiting {
    Waiting(std::unique_ptr<WaitingOperation> op, Kernel::Done d, Cancellation* c)
        : operation(std::move(op)), done(std::move(d)), cancellation(c) {}

    std::unique_ptr<WaitingOperation> operation;
    Kernel::Done done;
    Cancellation* const cancellation;
    MemoryAccount* const memory = CurrentMemoryAccount();
    Cancellation::Token token = Cancellation::kAlreadyCancelled;
    Status status;
  };
  using Waitings = std::list<Waiting>;

  /// An error is kept, and ends it.
  static WaitingOperation::Progress Attempt(Waiting& waiting);
  static void End(Waitings ended);
  /// Makes it one that was cancelled.
  static void GiveUp(Waiting& waiting, const Status& why);
  void Advance(Waitings* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Cancel(int line, const Waiting* waiting, const Status& why);

  std::array<Waitings, kLines> lines_ ABSL_GUARDED_BY(mu_);
  /// The waiting ones that CancelLine has ended, until Advance.
  Waitings cancelled_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tenon
