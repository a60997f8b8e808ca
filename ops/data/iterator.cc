// SPDX-License-Identifier: Apache-2.0
#include "ops/data/iterator.h"

#include <deque>
#include <optional>
#include <thread>

#include "core/base/exceptions.h"
#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "ops/math/accumulate.h"

namespace tenon {
namespace {

/// A dataset's iterator and what belongs to it.
struct Walk {
  ~Walk() { End(); }
  void End() { context->cancellation().Cancel(Cancelled("the iterator begins another walk")); }

  const ContextPtr context = std::make_shared<IteratorContext>();
  IteratorPtr iterator;
};

/// What one call of Next gave.
struct Result {
  StatusOr<bool> found = false;
  DatasetElement element;
};

/// A step that waits for an element.
struct Request {
  Request(KernelContext& c, bool optional, Kernel::Done d)
      : ctx(c), as_optional(optional), done(std::move(d)) {}

  Status Fill(Result result) {
    TENON_RETURN_IF_ERROR(result.found.status());
    if (as_optional) {
      auto made = std::make_shared<OptionalElement>();
      made->exists = *result.found;
      for (const Tensor& t : result.element) TENON_RETURN_IF_ERROR(made->CountDepth(t));
      made->element = std::move(result.element);
      ctx.set_output(0, Tensor::Scalar(Variant{std::move(made)}));
      return OkStatus();
    }
    if (!*result.found) return OutOfRange("End of sequence");
    for (size_t i = 0; i < result.element.size(); ++i) {
      ctx.set_output(static_cast<int>(i), std::move(result.element[i]));
    }
    return OkStatus();
  }
  void Deregister() {
    if (token != Cancellation::kAlreadyCancelled) ctx.run().cancellation->Deregister(token);
  }

  KernelContext& ctx;
  const bool as_optional;
  const Kernel::Done done;
  Cancellation::Token token = Cancellation::kAlreadyCancelled;
  bool over = false;  // under the iterator's lock
};
using RequestPtr = std::shared_ptr<Request>;

}  // namespace

/// What the thread holds too: a step that ends on it may be the last to hold the iterator.
class Iterator::Core : public std::enable_shared_from_this<Core> {
 public:
  void Begin(std::shared_ptr<Walk> walk) {
    std::optional<Result> dropped;
    {
      MutexLock lock(mu_);
      std::swap(walk_, walk);
      std::swap(kept_, dropped);
    }
    if (walk == nullptr) return;
    walk->End();
    // It ends where it may wait for threads of its own, and these for those of the steps. Without a
    // thread it stays until the iterator ends.
    MutexLock lock(mu_);
    ended_.push_back(std::move(walk));
    (void)WakeThread();
  }

  void GetNext(KernelContext& ctx, bool as_optional, Kernel::Done done) {
    const auto request = std::make_shared<Request>(ctx, as_optional, std::move(done));
    Cancellation* const cancellation = ctx.run().cancellation;
    if (cancellation != nullptr) {
      request->token = cancellation->Register([this, request](const Status& why) {
        {
          MutexLock lock(mu_);
          if (std::exchange(request->over, true)) return;
          std::erase(requests_, request);
        }
        request->done(why);
      });
      if (request->token == Cancellation::kAlreadyCancelled) {
        return request->done(cancellation->status());
      }
    }
    std::shared_ptr<Walk> walk;
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
    if (!status.ok()) {
      request->Deregister();
      return request->done(status);
    }
    if (walk != nullptr) Deliver(walk, Take(*walk));
  }

  void Close() {
    std::thread thread;
    std::shared_ptr<Walk> walk;
    {
      MutexLock lock(mu_);
      closing_ = true;
      walk = walk_;
      changed_.NotifyAll();
      thread = std::move(thread_);
    }
    if (walk != nullptr) walk->End();
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }

 private:
  /// For a request that has come: it is for this thread to be served, from `*walk`, when the
  /// element is ready, else for the iterator's.
  Status Serve(std::shared_ptr<Walk>* walk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (walk_ == nullptr) {
      return FailedPrecondition(
          "GetNext() failed because the iterator has not been initialized. Ensure that you have "
          "run "
          "the initializer operation for this iterator before getting the next element.");
    }
    if (!busy_ && requests_.size() == 1 && (kept_.has_value() || walk_->iterator->IsReady())) {
      busy_ = true;
      *walk = walk_;
      return OkStatus();
    }
    return WakeThread();
  }

  Status WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    changed_.NotifyAll();
    if (thread_.joinable()) return OkStatus();
    // The system may have no thread to give.
    return CatchExceptions([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      thread_ = std::thread([self = shared_from_this()] { self->Work(); });
      return OkStatus();
    });
  }

  void Work() {
    while (true) {
      std::shared_ptr<Walk> walk;
      std::vector<std::shared_ptr<Walk>> ended;
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
      Result result;
      {
        const BusyThread busy;
        result = Take(*walk);
      }
      Deliver(std::move(walk), std::move(result));
    }
  }

  Result Take(Walk& walk) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      std::optional<Result> kept;
      MutexLock lock(mu_);
      std::swap(kept, kept_);
      if (kept.has_value()) return *std::move(kept);
    }
    const InterruptibleBy interruption(&walk.context->cancellation());
    Result result;
    const Status status = CatchExceptions([&] {
      result.found = walk.iterator->Next(&result.element);
      return OkStatus();
    });
    if (!status.ok()) result.found = status;
    return result;
  }

  /// Hands `result` to the step that waits longest; it is kept when nobody waits any more.
  void Deliver(std::shared_ptr<Walk> walk, Result result) ABSL_LOCKS_EXCLUDED(mu_) {
    RequestPtr request;
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
    request->Deregister();
    request->done(request->Fill(std::move(result)));
  }

  Mutex mu_;
  CondVar changed_;
  std::shared_ptr<Walk> walk_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<Walk>> ended_ ABSL_GUARDED_BY(mu_);  // walks before it
  bool busy_ ABSL_GUARDED_BY(mu_) = false;                         // an element is being made
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<Result> kept_ ABSL_GUARDED_BY(mu_);
  std::deque<RequestPtr> requests_ ABSL_GUARDED_BY(mu_);
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
  TENON_RETURN_IF_ERROR(CheckSpec(spec_, dataset->types(), dataset->shapes()));
  auto walk = std::make_shared<Walk>();
  TENON_ASSIGN_OR_RETURN(walk->iterator, dataset->MakeIterator(walk->context));
  core_->Begin(std::move(walk));
  return OkStatus();
}

StatusOr<VariantRef> OptionalElement::ZerosLike() const {
  auto zeros = std::make_shared<OptionalElement>();
  zeros->exists = exists;
  for (const Tensor& t : element) {
    if (Interrupted()) break;
    TENON_ASSIGN_OR_RETURN(zeros->element.emplace_back(), ZerosOf(t));
    TENON_RETURN_IF_ERROR(zeros->CountDepth(zeros->element.back()));
  }
  return VariantRef(std::move(zeros));
}

StatusOr<VariantRef> OptionalElement::Plus(const VariantValue& other) const {
  const auto* const optional = dynamic_cast<const OptionalElement*>(&other);
  if (optional == nullptr) return VariantValue::Plus(other);
  if (exists != optional->exists) {
    return InvalidArgument("Cannot add optionals because one has a value and the other doesn't.");
  }
  if (element.size() != optional->element.size()) {
    return InvalidArgument("Cannot add optionals because they have different numbers of components",
                           " (", element.size(), " and ", optional->element.size(), ").");
  }
  auto sum = std::make_shared<OptionalElement>();
  sum->exists = exists;
  for (size_t i = 0; i < element.size() && !Interrupted(); ++i) {
    TENON_ASSIGN_OR_RETURN(sum->element.emplace_back(), SumOf(element[i], optional->element[i]));
    TENON_RETURN_IF_ERROR(sum->CountDepth(sum->element.back()));
  }
  return VariantRef(std::move(sum));
}

void Iterator::GetNext(KernelContext& ctx, bool as_optional, Kernel::Done done) {
  core_->GetNext(ctx, as_optional, std::move(done));
}

}  // namespace tenon
