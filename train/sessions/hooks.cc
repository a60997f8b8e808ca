// SPDX-License-Identifier: Apache-2.0
#include "train/sessions/hooks.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "data/files/file.h"
#include "runtime/execute/trace.h"
#include "train/one_line.h"

namespace tenon {
namespace {

constexpr int kMostFailures = 5;
constexpr std::chrono::milliseconds kLastSavePause{2000};

/// Whether something can happen each so many steps.
Status CheckInterval(std::string_view hook, int64_t steps) {
  return steps >= 1
             ? OkStatus()
             : InvalidArgument("a ", hook, " does something each so many steps, at least 1; ",
                               "found ", steps);
}

class StopAtStepHook final : public SessionHook {
 public:
  StopAtStepHook(int64_t last_step, bool relative) : given_(last_step), relative_(relative) {}

  Status Begin() override {
    if (given_ < 0) {
      return InvalidArgument(relative_ ? "StopAfterSteps" : "StopAtStep",
                             " takes a step of at least 0, found ", given_);
    }
    return OkStatus();
  }
  Status AfterCreateSession(const RunContext& context, int64_t global_step) override {
    if (global_step < 0) {
      return InvalidArgument(
          "to stop at a step needs the graph's step counter: give GlobalStep() to "
          "the optimizer");
    }
    if (!last_) last_ = relative_ ? global_step + given_ : given_;
    first_ = global_step;
    runs_ = 0;
    if (global_step >= *last_) context.RequestStop();
    return OkStatus();
  }
  Status AfterRun(const RunContext& context, const RunValues& values) override {
    // The step may have read the counter before it counted itself.
    const bool may_be_last = values.global_step + 1 >= *last_;
    const bool is_uncounted = ++runs_ == kUncountedSteps && values.global_step <= first_;
    if (!may_be_last && !is_uncounted) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const int64_t now, context.ReadGlobalStep());
    if (now >= *last_) context.RequestStop();
    if (is_uncounted && now == first_ && now < *last_ && context.circumstances().is_alone) {
      return FailedPrecondition("training is to stop at step ", *last_, ", but ", runs_,
                                " steps have left the step counter at ", now,
                                ": run the training node in each step, and give GlobalStep() to ",
                                "the optimizer's Minimize");
    }
    return OkStatus();
  }

 private:
  /// After so many steps without a change of the counter, nobody else will make one.
  static constexpr int64_t kUncountedSteps = 100;
  const int64_t given_;
  const bool relative_;
  std::optional<int64_t> last_;
  int64_t first_ = 0, runs_ = 0;
};

class NanHook final : public SessionHook {
 public:
  NanHook(std::string name, OnNan action) : name_(std::move(name)), action_(action) {}

  Status BeforeRun(const RunContext& context, RunArguments* arguments) override {
    (void)context;
    arguments->fetches.push_back(name_);
    return OkStatus();
  }
  Status AfterRun(const RunContext& context, const RunValues& values) override {
    const Tensor& loss = values.fetched[0];
    double found = 0;
    if (loss.dtype() == DType::kFloat) {
      for (const float x : loss.flat<float>()) found = std::isfinite(x) ? found : x;
    } else if (loss.dtype() == DType::kDouble) {
      for (const double x : loss.flat<double>()) found = std::isfinite(x) ? found : x;
    } else {
      return InvalidArgument("NanTensorHook looks at float and double; '", name_, "' is ",
                             ToString(loss.dtype()));
    }
    if (std::isfinite(found)) return OkStatus();
    if (action_ == OnNan::kFail) {
      return InvalidArgument("training has diverged: '", name_, "' is ", found, " at step ",
                             values.global_step, "; try a smaller learning rate");
    }
    context.RequestStop();
    return OkStatus();
  }

 private:
  const std::string name_;
  const OnNan action_;
};

class LoggingHook final : public SessionHook {
 public:
  LoggingHook(const std::vector<std::pair<std::string, Output>>& tensors, int64_t steps,
              NoticeFunction notice)
      : steps_(steps), notice_(std::move(notice)) {
    for (const auto& [label, tensor] : tensors) {
      labels_.push_back(label);
      names_.push_back(tensor.name());
    }
  }

  Status Begin() override { return CheckInterval("LoggingTensorHook", steps_); }
  Status BeforeRun(const RunContext& context, RunArguments* arguments) override {
    (void)context;
    due_ = count_++ % steps_ == 0;
    if (due_) arguments->fetches = names_;
    return OkStatus();
  }
  Status AfterRun(const RunContext& context, const RunValues& values) override {
    (void)context;
    if (!due_ || !notice_) return OkStatus();
    std::string line;
    for (size_t i = 0; i < labels_.size(); ++i) {
      std::string value = values.fetched[i].ToString();
      // A scalar is shown as its number alone.
      if (values.fetched[i].rank() == 0) value.erase(0, value.find(' ') + 1);
      StrAppend(&line, i == 0 ? "" : ", ", labels_[i], " = ", value);
    }
    if (values.global_step >= 0) StrAppend(&line, " (step ", values.global_step, ")");
    notice_(line);
    return OkStatus();
  }

 private:
  const int64_t steps_;
  const NoticeFunction notice_;
  std::vector<std::string> labels_, names_;
  int64_t count_ = 0;
  bool due_ = false;
};

class TimelineHook final : public SessionHook {
 public:
  TimelineHook(std::string directory, int64_t steps)
      : directory_(std::move(directory)), steps_(steps) {}

  Status Begin() override { return CheckInterval("ProfilerHook", steps_); }
  Status BeforeRun(const RunContext& context, RunArguments* arguments) override {
    (void)context;
    // Not the first step, which compiles.
    arguments->trace = due_ = ++count_ % steps_ == 0;
    return OkStatus();
  }
  Status AfterRun(const RunContext& context, const RunValues& values) override {
    (void)context;
    if (!due_) return OkStatus();
    TENON_RETURN_IF_ERROR(MakeFolders(directory_));
    const int64_t step = values.global_step >= 0 ? values.global_step : count_;
    return WriteStringToFile(JoinPath(directory_, StrCat("timeline-", step, ".json")),
                             ToChromeTrace(values.trace));
  }

 private:
  const std::string directory_;
  const int64_t steps_;
  int64_t count_ = 0;
  bool due_ = false;
};

}  // namespace

StatusOr<int64_t> StepOf(const Tensor& counter) {
  if (counter.num_elements() == 1) {
    switch (counter.dtype()) {
      case DType::kInt64:
        return *counter.data<int64_t>();
      case DType::kInt32:
        return *counter.data<int32_t>();
      case DType::kFloat:
        return static_cast<int64_t>(*counter.data<float>());
      case DType::kDouble:
        return static_cast<int64_t>(*counter.data<double>());
      default:
        break;
    }
  }
  return InvalidArgument("a step counter is a scalar that counts; found ",
                         ToString(counter.dtype()), counter.shape().ToString());
}

StatusOr<int64_t> RunContext::ReadGlobalStep() const {
  if (global_step_.empty()) return -1;
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session_.Run({}, {global_step_}));
  return StepOf(values[0]);
}

bool Timer::IsDue(int64_t step, Clock::Time now) const {
  if (!last_step_) return true;
  if (steps_ > 0) return step >= *last_step_ + steps_;
  return now - last_time_ >= period_;
}

void Timer::Triggered(int64_t step, Clock::Time now) {
  last_step_ = step;
  last_time_ = now;
}

void SaveFailures::Tell(const Status& saved, int64_t step, std::string_view consequence) const {
  if (!notice_) return;
  notice_(StrCat("step ", step, " is not saved", consequence, ": ", OneLine(saved.ToString())));
}

Status SaveFailures::Count(const Status& saved, int64_t step, Clock::Time now) {
  in_a_row_ = saved.ok() ? 0 : in_a_row_ + 1;
  if (saved.ok()) return saved;
  if (in_a_row_ == 1) first_ = now;
  if (in_a_row_ >= kMostFailures && now - first_ >= patience_) {
    return Annotate(saved, StrCat(in_a_row_, " saves in a row have failed, the last one"));
  }
  Tell(saved, step, "; training goes on to the next checkpoint");
  return OkStatus();
}

Status SaveFailures::Insist(int64_t step, Clock& clock, const std::function<Status()>& save) {
  const Clock::Time begin = clock.Now();
  while (true) {
    const Status saved = save();
    const bool time_is_up = clock.Now() - begin + kLastSavePause > insistence_;
    if (saved.ok() || IsRecoverable(saved) || time_is_up) return saved;
    Tell(saved, step, "; trying again in 2 s");
    clock.SleepFor(kLastSavePause);
  }
}

std::shared_ptr<SessionHook> StopAtStep(int64_t last_step) {
  return std::make_shared<StopAtStepHook>(last_step, false);
}
std::shared_ptr<SessionHook> StopAfterSteps(int64_t steps) {
  return std::make_shared<StopAtStepHook>(steps, true);
}
std::shared_ptr<SessionHook> NanTensorHook(const Output& loss, OnNan action) {
  return std::make_shared<NanHook>(loss.name(), action);
}
std::shared_ptr<SessionHook> LoggingTensorHook(
    const std::vector<std::pair<std::string, Output>>& tensors, int64_t every_n_steps,
    NoticeFunction notice) {
  return std::make_shared<LoggingHook>(tensors, every_n_steps, std::move(notice));
}
std::shared_ptr<SessionHook> ProfilerHook(const std::string& directory, int64_t every_n_steps) {
  return std::make_shared<TimelineHook>(directory, every_n_steps);
}

StepCounterHook::StepCounterHook(int64_t steps, NoticeFunction notice)
    : steps_(steps), notice_(std::move(notice)) {}

Status StepCounterHook::Begin() { return CheckInterval("StepCounterHook", steps_); }

Status StepCounterHook::AfterRun(const RunContext& context, const RunValues& values) {
  if (values.global_step < 0) return OkStatus();
  if (last_step_ >= 0 && values.global_step < last_step_ + steps_) return OkStatus();
  const Clock::Time now = context.clock().Now();
  if (last_step_ >= 0 && notice_) {
    const double seconds = std::chrono::duration<double>(now - last_time_).count();
    const double rate = static_cast<double>(values.global_step - last_step_) / seconds;
    notice_(absl::StrFormat("step %d, %.1f steps/s", values.global_step, rate));
  }
  last_step_ = values.global_step;
  last_time_ = now;
  return OkStatus();
}

}  // namespace tenon
