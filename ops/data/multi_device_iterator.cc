// SPDX-License-Identifier: Apache-2.0
#include "ops/data/multi_device_iterator.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <thread>

#include "core/base/parallel.h"
#include "core/device/device.h"
#include "ops/data/handle_text.h"
#include "ops/data/walk.h"
#include "ops/state/resource_node.h"

namespace tenon {

/// The state, which the thread holds too: a step that ends on it may be the last to hold the
/// iterator.
class MultiDeviceIterator::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(int num_shards) : shards_(num_shards) {}

  int64_t Begin(std::shared_ptr<DatasetWalk> walk, int64_t limit) {
    std::vector<Shard> before;
    int64_t incarnation = 0;
    {
      MutexLock lock(mu_);
      std::swap(walk_, walk);
      before.resize(shards_.size());
      shards_.swap(before);
      for (const Shard& shard : before) {
        for (const ElementRequestPtr& request : shard.requests) request->over = true;
      }
      limit_ = limit;
      turn_ = 0;
      is_wanted_ = is_over_ = false;
      incarnation = ++incarnation_;
    }
    if (walk != nullptr) {
      walk->End();
      // The walk ends where it may wait for threads of its own, and these for those of the steps.
      // Without a thread it stays until the iterator ends.
      MutexLock lock(mu_);
      ended_.push_back(std::move(walk));
      (void)WakeThread();
    }
    for (const Shard& shard : before) {
      for (const ElementRequestPtr& request : shard.requests) {
        request->Answer({Cancelled("the multi-device iterator begins another walk"), {}});
      }
    }
    return incarnation;
  }

  void GetNext(KernelContext& ctx, int64_t shard, int64_t incarnation, Kernel::Done done) {
    const auto request = std::make_shared<ElementRequest>(ctx, false, std::move(done));
    const auto withdraw = [this, shard, request] {
      MutexLock lock(mu_);
      if (std::exchange(request->over, true)) return false;
      std::erase(shards_[shard].requests, request);
      return true;
    };
    if (!request->Await(withdraw)) return;
    std::optional<WalkResult> result;
    {
      MutexLock lock(mu_);
      if (request->over) return;  // cancelled meanwhile
      const Status status = Serve(request, shard, incarnation, &result);
      if (!status.ok()) result = {status, {}};
      request->over = result.has_value();
    }
    if (result.has_value()) request->Answer(*std::move(result));
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
  /// The elements that nobody has taken, or else the steps that wait for one.
  struct Shard {
    std::deque<WalkResult> ahead;
    std::deque<ElementRequestPtr> requests;
  };

  /// For a request that has come: its result where that is known, else it waits for the thread.
  Status Serve(const ElementRequestPtr& request, int64_t at, int64_t incarnation,
               std::optional<WalkResult>* result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (walk_ == nullptr) {
      return FailedPrecondition(
          "the multi-device iterator has no dataset: run its initializer, "
          "MultiDeviceIteratorInit, before it is asked for an element");
    }
    if (incarnation != incarnation_) {
      return InvalidArgument("Invalid incarnation id. Provided: ", incarnation,
                             "; Expected: ", incarnation_);
    }
    is_wanted_ = true;
    Shard& shard = shards_[at];
    if (!shard.ahead.empty()) {
      *result = std::move(shard.ahead.front());
      shard.ahead.pop_front();
      changed_.NotifyAll();
      return OkStatus();
    }
    if (is_over_) {
      result->emplace();
      return OkStatus();
    }
    TENON_RETURN_IF_ERROR(WakeThread());
    shard.requests.push_back(request);
    return OkStatus();
  }

  Status WakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    changed_.NotifyAll();
    if (thread_.joinable()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(thread_, StartThread([self = shared_from_this()] { self->Work(); }));
    return OkStatus();
  }

  /// Whether the element whose turn it is has a place.
  bool HasPlace() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!is_wanted_ || is_over_) return false;
    const Shard& shard = shards_[turn_];
    return !shard.requests.empty() || static_cast<int64_t>(shard.ahead.size()) < limit_;
  }

  void Work() {
    while (true) {
      std::shared_ptr<DatasetWalk> walk;
      std::vector<std::shared_ptr<DatasetWalk>> ended;
      {
        MutexLock lock(mu_);
        while (!closing_ && ended_.empty() && !HasPlace()) changed_.Wait(mu_);
        if (closing_) return;
        ended.swap(ended_);
        if (ended.empty()) walk = walk_;
      }
      if (walk == nullptr) continue;
      WalkResult result;
      {
        const BusyThread busy;
        result = walk->Take();
      }
      Deliver(*walk, std::move(result));
    }
  }

  /// Hands `result` to the shard whose turn it is; the end, to all that wait.
  void Deliver(const DatasetWalk& walk, WalkResult result) ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<ElementRequestPtr> served;
    {
      MutexLock lock(mu_);
      if (&walk != walk_.get()) return;  // another one has begun
      Shard& shard = shards_[turn_];
      turn_ = (turn_ + 1) % shards_.size();
      if (result.is_end()) {
        is_over_ = true;
        for (Shard& each : shards_) {
          served.insert(served.end(), each.requests.begin(), each.requests.end());
          each.requests.clear();
        }
      } else if (shard.requests.empty()) {
        shard.ahead.push_back(std::move(result));
      } else {
        served.push_back(std::move(shard.requests.front()));
        shard.requests.pop_front();
      }
      for (const ElementRequestPtr& request : served) request->over = true;
    }
    // Several get the end, which is what is left of it too.
    for (const auto& request : served) request->Answer(std::exchange(result, WalkResult()));
  }

  Mutex mu_;
  CondVar changed_;
  std::vector<Shard> shards_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<DatasetWalk> walk_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<DatasetWalk>> ended_ ABSL_GUARDED_BY(mu_);  // walks before it
  int64_t incarnation_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t limit_ ABSL_GUARDED_BY(mu_) = 0;       // of elements ahead, per shard
  size_t turn_ ABSL_GUARDED_BY(mu_) = 0;         // the shard of the next element
  bool is_wanted_ ABSL_GUARDED_BY(mu_) = false;  // somebody has asked for an element
  bool is_over_ ABSL_GUARDED_BY(mu_) = false;    // the dataset has no more
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

MultiDeviceIterator::MultiDeviceIterator(const Options& options, std::string name)
    : options_(options),
      name_(std::move(name)),
      core_(std::make_shared<Core>(options.num_shards)) {}

MultiDeviceIterator::~MultiDeviceIterator() { core_->Close(); }

Status MultiDeviceIterator::CheckShared(const Options& wanted) const {
  if (wanted.num_shards != options_.num_shards) {
    return InvalidArgument("multi-device iterator '", name_, "' is for ", options_.num_shards,
                           " devices, wanted ", wanted.num_shards);
  }
  return CheckTypes(wanted.types, wanted.shapes);
}

Status MultiDeviceIterator::CheckTypes(const DTypeVector& types,
                                       const std::vector<PartialShape>& shapes) const {
  const Status status = CheckSpec({types, shapes}, options_.types, options_.shapes);
  return status.ok() ? status : Annotate(status, StrCat("multi-device iterator '", name_, "'"));
}

StatusOr<int64_t> MultiDeviceIterator::Begin(const DatasetPtr& dataset, int64_t max_buffer_size) {
  if (max_buffer_size < 0) {
    return InvalidArgument("max_buffer_size must not be negative, found ", max_buffer_size);
  }
  TENON_ASSIGN_OR_RETURN(auto walk, DatasetWalk::Begin(options_, *dataset));
  return core_->Begin(std::move(walk), max_buffer_size);
}

void MultiDeviceIterator::GetNext(KernelContext& ctx, int64_t shard, int64_t incarnation,
                                  Kernel::Done done) {
  if (shard < 0 || shard >= options_.num_shards) {
    return done(NotInRange(shard, options_.num_shards, "shard_num"));
  }
  core_->GetNext(ctx, shard, incarnation, std::move(done));
}

namespace {

Status BeginMultiDeviceIteratorKernel(KernelContext& ctx, DatasetPtr dataset, const Tensor&,
                                      Integer max_buffer_size) {
  TENON_ASSIGN_OR_RETURN(const auto iterator, ResourceInput<MultiDeviceIterator>(ctx, 1));
  TENON_ASSIGN_OR_RETURN(const int64_t incarnation, iterator->Begin(dataset, max_buffer_size));
  return ctx.Return(Tensor::Scalar(incarnation));
}

class GetNextFromShardKernel final : public AsyncKernel {
 public:
  explicit GetNextFromShardKernel(KernelConstruction& c) : AsyncKernel(c), spec_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    std::shared_ptr<MultiDeviceIterator> iterator;
    int64_t shard = 0, incarnation = 0;
    const auto read = [&]() -> Status {
      TENON_ASSIGN_OR_RETURN(iterator, ResourceInput<MultiDeviceIterator>(ctx));
      TENON_ASSIGN_OR_RETURN(shard, ReadInteger(ctx.input(1), "shard_num"));
      TENON_ASSIGN_OR_RETURN(incarnation, ReadInteger(ctx.input(2), "incarnation_id"));
      return iterator->CheckTypes(spec_.types, spec_.shapes);
    };
    if (const Status status = read(); !status.ok()) return done(status);
    MultiDeviceIterator& found = *iterator;
    found.GetNext(ctx, shard, incarnation,
                  [keep = std::move(iterator), done](Status s) { done(s); });
  }

 private:
  const ElementSpec spec_;
};

/// Makes an iterator in each run. Without a deleter it ends with its last handle; with one the
/// store has it until it is deleted.
class AnonymousMultiDeviceIteratorKernel final : public Kernel {
 public:
  explicit AnonymousMultiDeviceIteratorKernel(KernelConstruction& c) : Kernel(c), options_(c) {}
  Status Compute(KernelContext& ctx) const override {
    static std::atomic<int64_t> made{0};
    const std::string unique = StrCat("_anonymous_multi_device_iterator_", made.fetch_add(1));
    const auto iterator = std::make_shared<MultiDeviceIterator>(options_, unique);
    ResourceHandle handle;
    handle.device = ctx.device().name();
    handle.container = ctx.resources().default_container();
    handle.name = unique;
    handle.type_name = MultiDeviceIterator::kTypeName;
    if (ctx.num_outputs() == 1) {
      handle.resource = iterator;
      return ctx.Return(Tensor::Scalar(std::move(handle)));
    }
    TENON_RETURN_IF_ERROR(
        ctx.resources()
            .LookupOrCreate<MultiDeviceIterator>("", unique, [&] { return iterator; })
            .status());
    ctx.set_output(0, Tensor::Scalar(std::move(handle)));
    ctx.set_output(1, Tensor::Scalar(Variant()));
    return OkStatus();
  }

 private:
  const MultiDeviceIterator::Options options_;
};

Status DeleteMultiDeviceIteratorKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleInput(ctx, 0));
  if (handle->resource != nullptr) return OkStatus();  // it ends with its last handle
  return ctx.resources().Delete(handle->container, MultiDeviceIterator::kKind, handle->name);
}

}  // namespace

void RegisterMultiDeviceIterator(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample(
        "needs a dataset; multi_device_iterator_test covers it");
  };
  get("MultiDeviceIterator", ScalarShape).Kernel<ResourceNodeKernel<MultiDeviceIterator>>(kCpu);
  for (const char* name : {"AnonymousMultiDeviceIterator", "AnonymousMultiDeviceIteratorV3"}) {
    get(name, ScalarShape).Kernel<AnonymousMultiDeviceIteratorKernel>(kCpu);
  }
  get("DeleteMultiDeviceIterator", NoOutputShape).Kernel(kCpu, DeleteMultiDeviceIteratorKernel);
  get("MultiDeviceIteratorInit", ScalarShape).Kernel(kCpu, BeginMultiDeviceIteratorKernel);
  get("MultiDeviceIteratorGetNextFromShard", ShapesOfElement).Kernel<GetNextFromShardKernel>(kCpu);
  get("MultiDeviceIteratorToStringHandle", ScalarShape)
      .Kernel(kCpu, HandleToTextKernel<MultiDeviceIterator>);
  get("MultiDeviceIteratorFromStringHandle", ScalarShape)
      .Kernel(kCpu, HandleOfTextKernel<MultiDeviceIterator>,
              {.attrs = {"output_types", "output_shapes"}});
}

}  // namespace tenon
