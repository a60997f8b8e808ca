// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation/stop_without_progress.h"

#include <map>
#include <utility>

#include "core/base/strings.h"
#include "train/sessions/hooks.h"

namespace tenon {
namespace {

class StopWithoutProgressHook final : public SessionHook {
 public:
  explicit StopWithoutProgressHook(const StopWithoutProgressOptions& options)
      : options_(options), timer_(0, options.period) {}

  Status Begin() override {
    if (options_.eval_dir.empty()) {
      return InvalidArgument("eval_dir is empty: where are the evaluations?");
    }
    if (options_.max_steps_without_progress < 1) {
      return InvalidArgument("max_steps_without_progress must be at least 1, found ",
                             options_.max_steps_without_progress);
    }
    return OkStatus();
  }

  Status AfterRun(const RunContext& context, const RunValues& values) override {
    const Clock::Time now = context.clock().Now();
    if (values.global_step < options_.min_steps || !timer_.IsDue(values.global_step, now)) {
      return OkStatus();
    }
    timer_.Triggered(values.global_step, now);
    TENON_ASSIGN_OR_RETURN(const auto history, ReadMetric(options_.eval_dir, options_.metric));
    if (history.empty()) return OkStatus();
    const int64_t best = BestStep(history, options_.better), last = history.rbegin()->first;
    if (last - best < options_.max_steps_without_progress) return OkStatus();
    if (options_.notice) {
      options_.notice(StrCat("training ends: ", options_.metric, " was best at step ", best, ", ",
                             history.at(best), ", and is ", history.at(last), " at step ", last));
    }
    context.RequestStop();
    return OkStatus();
  }

 private:
  const StopWithoutProgressOptions options_;
  Timer timer_;
};

}  // namespace

std::shared_ptr<SessionHook> StopWithoutProgress(const StopWithoutProgressOptions& options) {
  return std::make_shared<StopWithoutProgressHook>(options);
}

}  // namespace tenon
