// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation/evaluate_checkpoints.h"

#include <charconv>
#include <optional>
#include <utility>

#include "core/base/strings.h"
#include "core/build/building.h"
#include "data/files/path.h"
#include "data/records/event_file.h"
#include "runtime/session/local_session.h"
#include "train/saver/checkpoint_state.h"
#include "train/saver/saver.h"
#include "train/sessions/session_hook.h"
#include "train/sessions/stop_signal.h"
#include "train/variables.h"

namespace tenon {
namespace {

constexpr std::string_view kStepCounter = "global_step";

/// The number after the last hyphen of a checkpoint's name; 0 where there is none.
int64_t StepOfName(const std::string& prefix) {
  const size_t hyphen = prefix.rfind('-');
  int64_t step = 0;
  if (hyphen == std::string::npos) return 0;
  const char* const end = prefix.data() + prefix.size();
  const auto [read, error] = std::from_chars(prefix.data() + hyphen + 1, end, step);
  return error == std::errc() && read == end ? step : 0;
}

std::string Text(const MetricValues& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    StrAppend(&text, text.empty() ? "" : ", ", name, " ", value);
  }
  return text;
}

/// A session whose variables get the values of one checkpoint after the other.
class CheckpointEvaluator {
 public:
  using Evaluate = std::function<StatusOr<MetricValues>(Session& session)>;

  CheckpointEvaluator(const EvaluationOptions& options, const Evaluate& evaluate)
      : options_(options), evaluate_(evaluate), clock_(*options.clock) {}

  Status Open() {
    Graph& graph = *CurrentBuilding(options_.location).graph;
    if (options_.saver == nullptr) own_saver_.emplace(SaverOptions{.location = options_.location});
    for (const VariableEntry& variable : graph.variables()) {
      if (variable.ref->name() == kStepCounter) {
        step_name_ = ReadVariable(variable).name();
      }
    }
    TENON_ASSIGN_OR_RETURN(session_, MakeLocalSession(graph, {.clock = &clock_}));
    return OkStatus();
  }

  /// Until training has ended and its last checkpoint is evaluated.
  Status Follow() {
    while (StopSignal::received() == 0) {
      // The question comes before the look, so that what was saved until training ended is there.
      bool goes_on = false;
      if (options_.training_goes_on) {
        TENON_ASSIGN_OR_RETURN(goes_on, options_.training_goes_on());
      }
      TENON_ASSIGN_OR_RETURN(const bool has_evaluated, EvaluateLatest(!goes_on));
      if (has_evaluated) {
        const int64_t step = evaluations_.back().step;
        if (options_.last_step > 0 && step >= options_.last_step) break;
        continue;
      }
      if (!goes_on) break;
      clock_.SleepFor(options_.pause);
    }
    return OkStatus();
  }

  std::vector<Evaluation> Take() { return std::move(evaluations_); }

 private:
  /// Whether there was a checkpoint to evaluate.
  StatusOr<bool> EvaluateLatest(bool is_last) {
    const StatusOr<std::string> latest = LatestCheckpoint(options_.checkpoint_dir);
    if (latest.status().code() == StatusCode::kNotFound) return false;
    TENON_RETURN_IF_ERROR(latest.status());
    if (*latest == seen_) return false;
    const Clock::Time now = clock_.Now();
    if (begin_ && !is_last && now - *begin_ < options_.throttle) return false;
    begin_ = now;
    const Status evaluated = EvaluateOne(*latest);
    if (evaluated.code() == StatusCode::kNotFound) {
      // A training that saves often may have deleted it meanwhile.
      const StatusOr<std::string> newer = LatestCheckpoint(options_.checkpoint_dir);
      if (newer.ok() && *newer != *latest) {
        Notice(StrCat("checkpoint ", *latest, " has gone for a newer one"));
        return EvaluateLatest(is_last);
      }
    }
    TENON_RETURN_IF_ERROR(evaluated);
    seen_ = *latest;
    return true;
  }

  Status EvaluateOne(const std::string& prefix) {
    const Saver& saver = options_.saver != nullptr ? *options_.saver : *own_saver_;
    TENON_RETURN_IF_ERROR(saver.Restore(*session_, prefix));
    Evaluation evaluation = {StepOfName(prefix), prefix, {}};
    if (!step_name_.empty()) {
      TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> counter, session_->Run({}, {step_name_}));
      TENON_ASSIGN_OR_RETURN(evaluation.step, StepOf(counter[0]));
    }
    TENON_ASSIGN_OR_RETURN(evaluation.metrics, evaluate_(*session_));
    TENON_RETURN_IF_ERROR(Write(evaluation));
    Notice(StrCat("evaluation at step ", evaluation.step, ": ", Text(evaluation.metrics)));
    for (const auto& exporter : options_.exporters) {
      TENON_RETURN_IF_ERROR(exporter->Export(*session_, evaluation));
    }
    evaluations_.push_back(std::move(evaluation));
    return OkStatus();
  }

  Status Write(const Evaluation& evaluation) {
    if (writer_ == nullptr) {
      TENON_ASSIGN_OR_RETURN(writer_, EventWriter::Create(EvalDir(options_)));
    }
    for (const auto& [name, value] : evaluation.metrics) {
      TENON_RETURN_IF_ERROR(writer_->AddScalar(name, static_cast<float>(value), evaluation.step));
    }
    return OkStatus();
  }

  void Notice(const std::string& line) const {
    if (options_.notice) options_.notice(line);
  }

  const EvaluationOptions& options_;
  const Evaluate& evaluate_;
  Clock& clock_;
  const StopSignal signal_;
  std::optional<Saver> own_saver_;
  std::string step_name_;  // empty: the graph has no step counter
  std::unique_ptr<Session> session_;
  std::unique_ptr<EventWriter> writer_;
  std::string seen_;
  std::optional<Clock::Time> begin_;  // of the last evaluation
  std::vector<Evaluation> evaluations_;
};

}  // namespace

std::string EvalDir(const EvaluationOptions& options) {
  return options.eval_dir.empty() ? JoinPath(options.checkpoint_dir, "eval") : options.eval_dir;
}

StatusOr<std::vector<Evaluation>> EvaluateCheckpoints(
    const EvaluationOptions& options,
    const std::function<StatusOr<MetricValues>(Session& session)>& evaluate) {
  if (options.checkpoint_dir.empty()) {
    return InvalidArgument("checkpoint_dir is empty: which checkpoints are to be evaluated?");
  }
  CheckpointEvaluator evaluator(options, evaluate);
  TENON_RETURN_IF_ERROR(evaluator.Open());
  TENON_RETURN_IF_ERROR(evaluator.Follow());
  std::vector<Evaluation> evaluations = evaluator.Take();
  if (evaluations.empty()) {
    return NotFound("there was no checkpoint in '", options.checkpoint_dir, "' to evaluate");
  }
  return evaluations;
}

}  // namespace tenon
