// SPDX-License-Identifier: Apache-2.0
#include <deque>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/queues/staging.h"

namespace tenon {
namespace {

using Progress = WaitingOperation::Progress;

/// A queue that has no node of its own: those that put and take find it by name.
class StagingArea final : public StagingStore {
 public:
  static constexpr std::string_view kKind = "staging_area";
  using Element = std::vector<Tensor>;

  using StagingStore::StagingStore;
  std::string_view kind() const override { return kKind; }

  static int64_t BytesOf(const Element& element) {
    int64_t bytes = 0;
    for (const Tensor& t : element) bytes += static_cast<int64_t>(t.num_bytes());
    return bytes;
  }

  // For waiting operations.

  void Put(Element element, int64_t bytes) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    elements_.push_back(std::move(element));
    AddBytes(bytes);
  }
  /// The element of that number, or null.
  const Element* At(int64_t index) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return index < static_cast<int64_t>(elements_.size()) ? &elements_[index] : nullptr;
  }
  void PopFront() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    AddBytes(-BytesOf(elements_.front()));
    elements_.pop_front();
  }

 protected:
  int64_t NumElements() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return static_cast<int64_t>(elements_.size());
  }
  void ClearElements() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { elements_.clear(); }

 private:
  std::deque<Element> elements_ ABSL_GUARDED_BY(mu_);
};

using AreaName = StoreName<StagingArea>;

class PutOperation final : public WaitingOperation {
 public:
  PutOperation(StagingArea& area, StagingArea::Element element)
      : area_(area), element_(std::move(element)), bytes_(StagingArea::BytesOf(element_)) {}
  std::string_view name() const override { return "Stage"; }

  StatusOr<Progress> Attempt() override {
    TENON_ASSIGN_OR_RETURN(const bool has_room, area_.HasRoomFor(bytes_));
    if (!has_room) return Progress::kNone;
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
      if (ctx.input(0).rank() != 0) {
        return done(InvalidArgument("index must be scalar, found shape ", ctx.input(0).shape()));
      }
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

}  // namespace

void RegisterStagingOps(OpRegistry& ops) {
  const auto get = [&ops](std::string_view name, ShapeFn shape) {
    return ops.Get(name).Shape(shape).NoExample("needs a staging area; staging_ops_test covers it");
  };
  get("Stage", NoOutputShape).Kernel<StageKernel>(kCpu);
  get("Unstage", UnknownShape).Kernel<UnstageKernel>(kCpu);
  get("StagePeek", UnknownShape).Kernel<UnstageKernel>(kCpu);
  get("StageSize", ScalarShape).Kernel(kCpu, StoreSizeKernel<StagingArea, &StagingArea::size>);
  get("StageClear", NoOutputShape).Kernel(kCpu, ClearStoreKernel<StagingArea>);
}

}  // namespace tenon
