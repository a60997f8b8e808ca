// SPDX-License-Identifier: Apache-2.0
#include "train/allreduce/rank_hooks.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "ops/array/array_ops.h"
#include "ops/collectives/collectives_ops.h"
#include "ops/control_flow/control_flow_ops.h"
#include "train/sessions/stop_signal.h"
#include "train/variables.h"

namespace tenon {
namespace {

constexpr int64_t kGreatestOp = 4;  // of HorovodAllreduce
/// Ranks vote about so often whether to stop, and after so many steps at most: a vote costs as much
/// as the gradients of a small model do.
constexpr std::chrono::milliseconds kPause{10};
constexpr int32_t kMostBetween = 8;

/// A vote is the greatest of what the ranks say: 1 to stop, or else minus the number of steps until
/// the next vote, of which the least counts.
class RanksInStep final : public SessionHook {
 public:
  Status Begin() override {
    const NameScope scope(UnusedScope("ranks"));
    std::vector<Output> given;
    for (const VariableEntry& v : CurrentBuilding().graph->variables()) {
      const ColocateWith beside(Output(v.ref));
      given.push_back(
          ChangeVariable(v, "Assign", HorovodBroadcast(ReadVariable(v), /*root_rank=*/0)));
    }
    {
      const ControlDependencies after(given);
      broadcast_ = NoOp({.name = "broadcast"})->name();
    }
    const Output wish = Placeholder(DType::kInt32, PartialShape({}), {.name = "stops"});
    wish_ = wish.name();
    stops_ = HorovodAllreduce(wish, {.reduce_op = kGreatestOp}).name();
    return OkStatus();
  }

  Status AfterCreateSession(const RunContext& context, int64_t) override {
    between_ = left_ = 1;
    return context.session().Run({}, {}, {broadcast_}).status();
  }

  Status BeforeRun(const RunContext& context, RunArguments*) override {
    if (left_ == between_) since_ = context.clock().Now();
    return OkStatus();
  }

  Status AfterRun(const RunContext& context, const RunValues&) override {
    if (--left_ > 0) return OkStatus();
    const bool stops = StopSignal::received() != 0;
    const int32_t wish = stops ? 1 : -Wanted(context.clock().Now() - since_);
    TENON_ASSIGN_OR_RETURN(
        const std::vector<Tensor> greatest,
        context.session().Run({{wish_, Tensor::Scalar<int32_t>(wish)}}, {stops_}, {}));
    const int32_t agreed = greatest[0].scalar<int32_t>();
    if (agreed > 0) context.RequestStop();
    between_ = left_ = agreed > 0 ? 1 : -agreed;
    return OkStatus();
  }

 private:
  /// After how many steps this rank would vote again, where the last ones took so long.
  int32_t Wanted(Clock::Duration took) const {
    const int64_t most = std::min<int64_t>(2 * between_, kMostBetween);
    const int64_t fitting = took.count() > 0 ? between_ * kPause / took : most;
    return static_cast<int32_t>(std::clamp<int64_t>(fitting, 1, most));
  }

  std::string broadcast_, wish_, stops_;
  int32_t between_ = 1;  // steps from the last vote to the next one, the same on all ranks
  int32_t left_ = 1;     // of these
  Clock::Time since_;
};

}  // namespace

std::shared_ptr<SessionHook> KeepRanksInStep() { return std::make_shared<RanksInStep>(); }

}  // namespace tenon
