// SPDX-License-Identifier: Apache-2.0
#include "ops/data/iterator.h"

#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/parallel.h"
#include "ops/data/walk.h"

namespace tenon {

/// The state, which the thread holds too: a step that ends on it may be the last to hold the
/// iterator.
class Iterator::Core : public std::enable_shared_from_this<Core> {
 public:
  void Begin(std::shared_ptr<DatasetWalk> walk) {
    std::optional<WalkResult> dropped;
    {
      MutexLock lock(mu_);
      std::swap(walk_, walk);
      std::swap(kept_, dropped);
    }
    if (walk == nullptr) return;
    walk->End();
    // The walk ends where it may wait for threads of its own, and these for those of the steps.
    // Without a thread it stays until the iterator ends.
    MutexLock lock(mu_);
    ended_.push_back(std::move(walk));
    (void)WakeThread();
  }

  void GetNext(KernelContext& ctx, bool as_optional, Kernel::Done done) {
    const auto request = std::make_shared<ElementRequest>(ctx, as_optional, std::move(done));
    const auto withdraw = [this, request] {
      MutexLock lock(mu_);
      if (std::exchange(request->over, true)) return false;
      std::erase(requests_, request);
      return true;
    };
    if (!request->Await(withdraw)) return;
    std::shared_ptr<DatasetWalk> walk;
    Status status;
    {
      MutexLock lock(mu_);
      if (request->over) return;  // cancelled meanwhile
      requests_.push_back(request);
      status = Serve(&walk);
      if (!status.ok()) {
        request->over = true;
        requests_.pop_back();
      }
    }
    if (!status.ok()) return request->Answer({status, {}});
    if (walk != nullptr) Deliver(walk, Take(*walk));
  }

  void Close() {
    std::thread thread;
    std::shared_ptr<DatasetWalk> walk;
    {
      MutexLock lock(mu_);
      closing_ = true;
      walk = walk_;
      changed_.NotifyAll();
      thread = std::move(thread_);
    }
    if (walk != nullptr) walk->End();
    AwaitEnd(std::move(thread));
  }

 private:
  /// For a request that has come: it is for this thread to be served, from `*walk`, when the
  /// element is ready, else for the iterator's.
  Status Serve(std::shared_ptr<DatasetWalk>* walk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (walk_ == nullptr) {
      return FailedPrecondition(
          "GetNext() failed because the iterator has not been initialized. Ensure that you have "
          "run "
          "the initializer operation for this iterator before getting the next element.");
    }
    if (!busy_ && requests_.size() == 1 && (kept_.has_value() || walk_->IsReady())) {
      busy_ = true;
      *walk = walk_;
      return OkStatus();
    }
    return WakeThread();
  }

  Status WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    changed_.NotifyAll();
    if (thread_.joinable()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(thread_, StartThread([self = shared_from_this()] { self->Work(); }));
    return OkStatus();
  }

  void Work() {
    while (true) {
      std::shared_ptr<DatasetWalk> walk;
      std::vector<std::shared_ptr<DatasetWalk>> ended;
      {
        MutexLock lock(mu_);
        while (!closing_ && ended_.empty() && (busy_ || requests_.empty())) changed_.Wait(mu_);
        if (closing_) return;
        ended.swap(ended_);
        if (ended.empty()) {
          busy_ = true;
          walk = walk_;
        }
      }
      if (walk == nullptr) continue;
      WalkResult result;
      {
        const BusyThread busy;
        result = Take(*walk);
      }
      Deliver(std::move(walk), std::move(result));
    }
  }

  WalkResult Take(DatasetWalk& walk) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      std::optional<WalkResult> kept;
      MutexLock lock(mu_);
      std::swap(kept, kept_);
      if (kept.has_value()) return *std::move(kept);
    }
    return walk.Take();
  }

  /// Hands `result` to the step that waits longest; it is kept when nobody waits any more.
  void Deliver(std::shared_ptr<DatasetWalk> walk, WalkResult result) ABSL_LOCKS_EXCLUDED(mu_) {
    ElementRequestPtr request;
    {
      MutexLock lock(mu_);
      busy_ = false;
      if (walk != walk_) {
        // Another walk has begun. Whoever waits gets an element of that one.
        if (requests_.empty()) return;
        const Status status = WakeThread();
        if (status.ok()) return;
        result.found = status;
      }
      if (requests_.empty()) {
        kept_ = std::move(result);
        return;
      }
      request = std::move(requests_.front());
      requests_.pop_front();
      request->over = true;
      if (!requests_.empty()) changed_.NotifyAll();
    }
    request->Answer(std::move(result));
  }

  Mutex mu_;
  CondVar changed_;
  std::shared_ptr<DatasetWalk> walk_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<DatasetWalk>> ended_ ABSL_GUARDED_BY(mu_);  // walks before it
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // an element is being made
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<WalkResult> kept_ ABSL_GUARDED_BY(mu_);
  std::deque<ElementRequestPtr> requests_ ABSL_GUARDED_BY(mu_);
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

Iterator::Iterator(const ElementSpec& spec, std::string name)
    : spec_(spec), name_(std::move(name)), core_(std::make_shared<Core>()) {}

Iterator::~Iterator() { core_->Close(); }

Status Iterator::CheckShared(const ElementSpec& wanted) const {
  return CheckTypes(wanted.types, wanted.shapes);
}

Status Iterator::CheckTypes(const DTypeVector& types,
                            const std::vector<PartialShape>& shapes) const {
  const Status status = CheckSpec({types, shapes}, spec_.types, spec_.shapes);
  return status.ok() ? status : Annotate(status, StrCat("iterator '", name_, "'"));
}

Status Iterator::Begin(const DatasetPtr& dataset) {
  TENON_ASSIGN_OR_RETURN(auto walk, DatasetWalk::Begin(spec_, *dataset));
  core_->Begin(std::move(walk));
  return OkStatus();
}

void Iterator::GetNext(KernelContext& ctx, bool as_optional, Kernel::Done done) {
  core_->GetNext(ctx, as_optional, std::move(done));
}

}  // namespace tenon
