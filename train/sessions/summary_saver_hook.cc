// SPDX-License-Identifier: Apache-2.0
#include "core/build/building.h"
#include "ops/summary/summary_ops.h"
#include "train/sessions/hooks.h"

namespace tenon {

SummarySaverHook::SummarySaverHook(SummarySaverOptions options)
    : options_(std::move(options)), timer_(options_.steps, options_.period) {}

Status SummarySaverHook::Begin() {
  const BuildContext& context = CurrentBuilding();
  if (!options_.summary.exists()) {
    std::vector<Output> all;
    for (const Endpoint& e : context.graph->Collection("summaries")) all.emplace_back(e);
    if (!all.empty()) options_.summary = MergeSummary(all);
  }
  return context.graph->error();
}

Status SummarySaverHook::AfterCreateSession(const RunContext& context, int64_t global_step) {
  if (writer_ == nullptr) {
    EventWriterOptions events;
    events.clock = [&clock = context.clock()] {
      return std::chrono::duration<double>(clock.WallNow().time_since_epoch()).count();
    };
    TENON_ASSIGN_OR_RETURN(
        writer_, EventWriter::Create(options_.directory, *CurrentBuilding().graph, events));
  }
  return writer_->AddSessionLog(EventWriter::SessionChange::kStart,
                                std::max<int64_t>(global_step, 0));
}

Status SummarySaverHook::BeforeRun(const RunContext& context, RunArguments* arguments) {
  asked_ = options_.summary.exists() && timer_.IsDue(steps_seen_, context.clock().Now());
  if (asked_) arguments->fetches.push_back(options_.summary.name());
  return OkStatus();
}

Status SummarySaverHook::AfterRun(const RunContext& context, const RunValues& values) {
  const int64_t step = values.global_step >= 0 ? values.global_step : steps_seen_;
  const Clock::Time now = context.clock().Now();
  const bool due = timer_.IsDue(steps_seen_, now);
  if (asked_) {
    TENON_RETURN_IF_ERROR(writer_->AddSummary(values.fetched[0].scalar<TString>(), step));
  }
  if (due) {
    timer_.Triggered(steps_seen_, now);
    if (rate_step_ >= 0 && step > rate_step_) {
      const double seconds = std::chrono::duration<double>(now - rate_time_).count();
      const double rate = static_cast<double>(step - rate_step_) / seconds;
      TENON_RETURN_IF_ERROR(writer_->AddScalar("global_step/sec", static_cast<float>(rate), step));
    }
    rate_step_ = step;
    rate_time_ = now;
  }
  ++steps_seen_;
  return OkStatus();
}

Status SummarySaverHook::End(const RunContext& context) {
  (void)context;
  if (writer_ == nullptr) return OkStatus();
  TENON_RETURN_IF_ERROR(
      writer_->AddSessionLog(EventWriter::SessionChange::kStop, std::max<int64_t>(rate_step_, 0)));
  const Status closed = writer_->Close();
  writer_ = nullptr;
  return closed;
}

}  // namespace tenon
