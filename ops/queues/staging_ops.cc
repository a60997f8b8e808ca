// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include "core/op_registry.h"
#include "ops/arguments.h"
#include "ops/queues/waiting_resource.h"

namespace tenon {
namespace {

using Progress = WaitingOperation::Progress;

/// A queue that has no node of its own: those that put and take find it by name.
class StagingArea final : public WaitingResource {
 public:
  static constexpr std::string_view kKind = "staging_area";
  static constexpr int kPuts = 0, kTakes = 1, kPeeks = 2;
  using Element = std::vector<Tensor>;

  /// For at most so many elements and bytes; 0: no limit.
  StagingArea(int64_t capacity, int64_t memory_limit)
      : capacity_(capacity), memory_limit_(memory_limit) {}
  std::string_view kind() const override { return kKind; }
  int64_t num_bytes() const override {
    MutexLock lock(mu_);
    return bytes_;
  }
  int64_t memory_limit() const { return memory_limit_; }

  static int64_t BytesOf(const Element& element) {
    int64_t bytes = 0;
    for (const Tensor& t : element) bytes += static_cast<int64_t>(t.num_bytes());
    return bytes;
  }

  int64_t size() const {
    MutexLock lock(mu_);
    return static_cast<int64_t>(elements_.size());
  }
  void Clear() {
    (void)Apply([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      elements_.clear();
      bytes_ = 0;
      return OkStatus();
    });
  }

  // For waiting operations.

  bool HasRoomFor(int64_t bytes) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return (capacity_ == 0 || static_cast<int64_t>(elements_.size()) < capacity_) &&
           (memory_limit_ == 0 || bytes_ + bytes <= memory_limit_);
  }
  void Put(Element element, int64_t bytes) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    elements_.push_back(std::move(element));
    bytes_ += bytes;
  }
  /// The element of that number, or null.
  const Element* At(int64_t index) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return index < static_cast<int64_t>(elements_.size()) ? &elements_[index] : nullptr;
  }
  void PopFront() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    bytes_ -= BytesOf(elements_.front());
    elements_.pop_front();
  }

 private:
  const int64_t capacity_, memory_limit_;
  std::deque<Element> elements_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

class PutOperation final : public WaitingOperation {
 public:
  PutOperation(StagingArea& area, StagingArea::Element element)
      : area_(area), element_(std::move(element)), bytes_(StagingArea::BytesOf(element_)) {}
  std::string_view name() const override { return "Stage"; }

  StatusOr<Progress> Attempt() override {
    if (area_.memory_limit() != 0 && bytes_ > area_.memory_limit()) {
      return ResourceExhausted("Attempted to insert tensors with combined size of '", bytes_,
                               "' bytes into Staging Area with a memory limit of '",
                               area_.memory_limit(), "'.");
    }
    if (!area_.HasRoomFor(bytes_)) return Progress::kNone;
    area_.Put(std::move(element_), bytes_);
    return Progress::kDone;
  }

 private:
  StagingArea& area_;
  StagingArea::Element element_;
  const int64_t bytes_;
};

/// Gives an element, and with `take` removes it.
class GetOperation final : public WaitingOperation {
 public:
  GetOperation(StagingArea& area, int64_t index, bool take, KernelContext& ctx)
      : area_(area), index_(index), take_(take), ctx_(ctx) {}
  std::string_view name() const override { return take_ ? "Unstage" : "StagePeek"; }

  StatusOr<Progress> Attempt() override {
    const StagingArea::Element* const element = area_.At(index_);
    if (element == nullptr) return Progress::kNone;
    if (static_cast<int>(element->size()) != ctx_.num_outputs()) {
      return InvalidArgument("Mismatched stage/unstage: the element has ", element->size(),
                             " tensors, wanted ", ctx_.num_outputs());
    }
    for (int i = 0; i < ctx_.num_outputs(); ++i) {
      const Tensor& t = (*element)[i];
      if (t.dtype() != ctx_.output_type(i)) {
        return InvalidArgument("Mismatched stage/unstage: tensor ", i, " is ", t.dtype(),
                               ", wanted ", ctx_.output_type(i));
      }
    }
    for (int i = 0; i < ctx_.num_outputs(); ++i) ctx_.set_output(i, (*element)[i]);
    if (take_) area_.PopFront();
    return Progress::kDone;
  }

 private:
  StagingArea& area_;
  const int64_t index_;
  const bool take_;
  KernelContext& ctx_;
};

/// What a node says of its area; the first one makes it.
struct AreaName : KernelState {
  explicit AreaName(KernelConstruction& c)
      : container(c.Attr<std::string>("container")),
        name(c.Attr<std::string>("shared_name")),
        capacity(c.Attr<int64_t>("capacity")),
        memory_limit(c.Attr<int64_t>("memory_limit")) {
    if (name.empty()) name = c.name();
  }
  StatusOr<std::shared_ptr<StagingArea>> Find(const KernelContext& ctx) const {
    return ctx.resources().LookupOrCreate<StagingArea>(
        container, name, [&] { return std::make_shared<StagingArea>(capacity, memory_limit); });
  }

  std::string container, name;
  int64_t capacity, memory_limit;
};

class StageKernel final : public AsyncKernel {
 public:
  explicit StageKernel(KernelConstruction& c) : AsyncKernel(c), area_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const auto area = area_.Find(ctx);
    if (!area.ok()) return done(area.status());
    StagingArea::Element element;
    for (int i = 0; i < ctx.num_inputs(); ++i) element.push_back(ctx.TakeInput(i));
    (*area)->Start(StagingArea::kPuts, std::make_unique<PutOperation>(**area, std::move(element)),
                   ctx, std::move(done));
  }

 private:
  const AreaName area_;
};

/// Unstage, and StagePeek, which has an index as input.
class UnstageKernel final : public AsyncKernel {
 public:
  explicit UnstageKernel(KernelConstruction& c) : AsyncKernel(c), area_(c) {}

  void ComputeAsync(KernelContext& ctx, Done done) const override {
    const auto area = area_.Find(ctx);
    if (!area.ok()) return done(area.status());
    StatusOr<int64_t> index = 0;
    const bool take = ctx.num_inputs() == 0;
    if (!take) {
      index = ReadInteger(ctx.input(0), "index");
      if (!index.ok()) return done(index.status());
      if (*index < 0) return done(InvalidArgument("index must be at least 0, found ", *index));
    }
    (*area)->Start(take ? StagingArea::kTakes : StagingArea::kPeeks,
                   std::make_unique<GetOperation>(**area, *index, take, ctx), ctx, std::move(done));
  }

 private:
  const AreaName area_;
};

Status StageSizeKernel(KernelContext& ctx, const AreaName& name) {
  TENON_ASSIGN_OR_RETURN(const auto area, name.Find(ctx));
  return ctx.Return(Tensor::Scalar(static_cast<int32_t>(area->size())));
}

Status StageClearKernel(KernelContext& ctx, const AreaName& name) {
  TENON_ASSIGN_OR_RETURN(const auto area, name.Find(ctx));
  area->Clear();
  return OkStatus();
}

}  // namespace

void RegisterStagingOps(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample("needs a staging area; staging_ops_test covers it");
  };
  get("Stage", NoOutputShape).Kernel<StageKernel>(kCpu);
  get("Unstage", UnknownShape).Kernel<UnstageKernel>(kCpu);
  get("StagePeek", UnknownShape).Kernel<UnstageKernel>(kCpu);
  get("StageSize", ScalarShape).Kernel(kCpu, StageSizeKernel);
  get("StageClear", NoOutputShape).Kernel(kCpu, StageClearKernel);
}

}  // namespace tenon
