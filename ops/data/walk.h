// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "ops/data/dataset.h"

// The parts of iterators that stay from step to step.

namespace tenon {

/// The result of one call of Next.
struct WalkResult {
  bool is_end() const { return found.ok() && !*found; }

  StatusOr<bool> found = false;
  DatasetElement element;
};

/// A walk through a dataset: its iterator and what belongs to that.
class DatasetWalk {
 public:
  /// At the beginning of `dataset`; InvalidArgument unless its elements are those of `wanted`.
  static StatusOr<std::shared_ptr<DatasetWalk>> Begin(const ElementSpec& wanted,
                                                      const Dataset& dataset);
  ~DatasetWalk() { End(); }

  /// Ends a Take that waits, and later ones. Thread-safe.
  void End() { context_->cancellation().Cancel(Cancelled("the iterator begins another walk")); }
  bool IsReady() const { return iterator_->IsReady(); }
  /// The next element. For one thread at a time; may wait, and ends with the walk.
  WalkResult Take();

 private:
  const ContextPtr context_ = std::make_shared<IteratorContext>();
  IteratorPtr iterator_;
};

/// A thread that does `work`; ResourceExhausted where the system has none to give.
StatusOr<std::thread> StartThread(std::function<void()> work);
/// Waits for the end of a thread that has been told to end, if there is one; one that calls this
/// itself is let go.
void AwaitEnd(std::thread thread);

/// A step that waits for an element.
class ElementRequest {
 public:
  /// Whether somebody has taken it upon himself to end the step. Under the iterator's lock.
  bool over = false;

  /// `ctx` must live until `done` is called.
  ElementRequest(KernelContext& ctx, bool as_optional, Kernel::Done done)
      : ctx_(ctx), as_optional_(as_optional), done_(std::move(done)) {}

  /// Whether the step may wait; false when it is cancelled and has ended. Its cancellation ends it
  /// later where `withdraw`, on the cancelling thread, says that it was not over.
  bool Await(std::function<bool()> withdraw);
  /// Ends the step with an element, an error or the end. Called once, without a lock that
  /// `withdraw` takes.
  void Answer(WalkResult result);

 private:
  Status Fill(WalkResult result);

  KernelContext& ctx_;
  const bool as_optional_;
  const Kernel::Done done_;
  Cancellation::Token token_ = Cancellation::kAlreadyCancelled;
};
using ElementRequestPtr = std::shared_ptr<ElementRequest>;

}  // namespace tenon
