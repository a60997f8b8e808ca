// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <thread>

#include "core/base/exceptions.h"
#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "ops/data/dataset.h"

namespace tenon {
namespace {

/// What one call of Next gives.
struct Made {
  Status status;
  bool is_end = false;
  DatasetElement element;

  StatusOr<bool> Give(DatasetElement* out) {
    TENON_RETURN_IF_ERROR(status);
    *out = std::move(element);
    return !is_end;
  }
};

class PrefetchIterator final : public ElementIterator {
 public:
  PrefetchIterator(ContextPtr context, IteratorPtr input, int64_t limit)
      : context_(std::move(context)), input_(std::move(input)), limit_(limit) {}
  ~PrefetchIterator() override {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      room_.NotifyOne();
    }
    if (thread_.joinable()) thread_.join();
  }

  StatusOr<bool> Next(DatasetElement* out) override {
    if (ended_) return false;
    // The system may have no thread to give.
    if (!thread_.joinable()) {
      TENON_RETURN_IF_ERROR(CatchExceptions([&] {
        thread_ = std::thread([this] { Work(); });
        return OkStatus();
      }));
    }
    Made made;
    {
      MutexLock lock(mu_);
      while (buffer_.empty()) there_.Wait(mu_);
      made = std::move(buffer_.front());
      buffer_.pop_front();
      room_.NotifyOne();
    }
    ended_ = made.is_end;
    return made.Give(out);
  }
  bool IsReady() const override {
    MutexLock lock(mu_);
    return ended_ || !buffer_.empty();
  }

 private:
  void Work() {
    const InterruptibleBy interruption(&context_->cancellation());
    for (bool is_end = false; !is_end;) {
      {
        MutexLock lock(mu_);
        while (!stopping_ && static_cast<int64_t>(buffer_.size()) >= limit_) room_.Wait(mu_);
        if (stopping_) return;
      }
      Made made;
      {
        const BusyThread busy;
        made.status = CatchExceptions([&] {
          TENON_ASSIGN_OR_RETURN(const bool found, input_->Next(&made.element));
          made.is_end = !found;
          return OkStatus();
        });
      }
      // After its end every element is Cancelled: one says enough.
      is_end = made.is_end || context_->cancellation().cancelled();
      made.is_end = is_end;
      MutexLock lock(mu_);
      buffer_.push_back(std::move(made));
      there_.NotifyOne();
    }
  }

  const ContextPtr context_;
  const IteratorPtr input_;
  const int64_t limit_;
  bool ended_ = false;
  std::thread thread_;
  mutable Mutex mu_;
  CondVar room_, there_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Made> buffer_ ABSL_GUARDED_BY(mu_);
};

class ParallelMap final : public ElementIterator {
 public:
  ParallelMap(IteratorPtr input, FunctionCaller caller, int64_t limit, bool keeps_cardinality)
      : input_(std::move(input)),
        caller_(std::move(caller)),
        limit_(limit),
        keeps_cardinality_(keeps_cardinality),
        calls_(std::make_shared<Calls>()) {}

  StatusOr<bool> Next(DatasetElement* out) override {
    while (input_ != nullptr && static_cast<int64_t>(pending_.size()) < limit_) {
      StartOne();
    }
    if (pending_.empty()) return false;
    const std::shared_ptr<Call> first = std::move(pending_.front());
    pending_.pop_front();
    {
      MutexLock lock(calls_->mu);
      while (!first->over) calls_->ended.Wait(calls_->mu);
    }
    TENON_ASSIGN_OR_RETURN(const bool mapped, IsMapped(first->made.status, keeps_cardinality_));
    if (mapped) return first->made.Give(out);
    input_ = nullptr;
    pending_.clear();
    return false;
  }
  bool IsReady() const override {
    if (pending_.empty()) return false;
    MutexLock lock(calls_->mu);
    return pending_.front()->over && static_cast<int64_t>(pending_.size()) == limit_;
  }

 private:
  struct Call {
    Made made;
    bool over = false;  // under the lock of Calls
  };
  /// Outlives the iterator while a call runs.
  struct Calls {
    Mutex mu;
    CondVar ended;
  };

  void StartOne() {
    DatasetElement element;
    auto call = std::make_shared<Call>();
    const StatusOr<bool> found = input_->Next(&element);
    if (!found.ok()) {
      call->made.status = found.status();
      call->over = true;
    } else if (!*found) {
      input_ = nullptr;
      return;
    }
    pending_.push_back(call);
    if (call->over) return;
    caller_.CallAsync(std::move(element),
                      [call, calls = calls_](const Status& status, DatasetElement results) {
                        MutexLock lock(calls->mu);
                        call->made.status = status;
                        call->made.element = std::move(results);
                        call->over = true;
                        calls->ended.NotifyAll();
                      });
  }

  IteratorPtr input_;
  const FunctionCaller caller_;
  const int64_t limit_;
  const bool keeps_cardinality_;
  const std::shared_ptr<Calls> calls_;
  std::deque<std::shared_ptr<Call>> pending_;
};

}  // namespace

IteratorPtr PrefetchedIterator(const ContextPtr& context, IteratorPtr input, int64_t limit) {
  return std::make_unique<PrefetchIterator>(context, std::move(input), limit);
}

IteratorPtr ParallelMapIterator(IteratorPtr input, FunctionCaller caller, int64_t limit,
                                bool keeps_cardinality) {
  return std::make_unique<ParallelMap>(std::move(input), std::move(caller), limit,
                                       keeps_cardinality);
}

}  // namespace tenon
