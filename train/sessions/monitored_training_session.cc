// SPDX-License-Identifier: Apache-2.0
#include "train/sessions/monitored_training_session.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "core/build/loop_frame.h"
#include "core/device/communicator.h"
#include "core/device/device_name.h"
#include "core/op/op_traits.h"
#include "distributed/protocol/server.h"
#include "distributed/protocol/task_role.h"
#include "ops/control_flow/flow_scope.h"
#include "ops/math/math_ops.h"
#include "runtime/session/local_session.h"
#include "train/one_line.h"
#include "train/saver/probe.h"
#include "train/sessions/hooks.h"
#include "train/variables.h"

namespace tenon {
namespace {

constexpr std::chrono::milliseconds kLongestPause{30000};

/// Whether the numbers mean something: 0 has a meaning of its own in all of them.
Status CheckOptions(const MonitoredTrainingSessionOptions& options) {
  const std::pair<std::string_view, int64_t> numbers[] = {
      {"save_checkpoint_steps", options.save_checkpoint_steps},
      {"save_checkpoint_period", options.save_checkpoint_period.count()},
      {"save_summaries_steps", options.save_summaries_steps},
      {"log_step_count_steps", options.log_step_count_steps},
      {"ready_deadline", options.ready_deadline.count()},
      {"interrupted_step_limit", options.interrupted_step_limit.count()},
      {"max_recoveries", options.max_recoveries},
      {"first_pause", options.first_pause.count()}};
  for (const auto& [name, value] : numbers) {
    if (value < 0) return InvalidArgument(name, " must be at least 0, found ", value);
  }
  return OkStatus();
}

}  // namespace

MonitoredTrainingSession::MonitoredTrainingSession(const MonitoredTrainingSessionOptions& options)
    : options_(options), graph_(*CurrentBuilding(options.location).graph) {
  if (!options.stop_on_signals) return;
  signal_ = std::make_unique<StopSignal>();
  watch_ = std::make_unique<SignalWatch>(
      SignalWatch::Options{options.server, options.notice, options.checkpoint_dir,
                           options.interrupted_step_limit, options.clock, options.threads});
}

MonitoredTrainingSession::~MonitoredTrainingSession() {
  if (!closed_ && session_ != nullptr && options_.notice && options_.is_chief &&
      !options_.checkpoint_dir.empty()) {
    options_.notice(
        "the session goes without Close(): what was trained since the last checkpoint is lost");
  }
  EndSession().IgnoreError();
}

Status MonitoredTrainingSession::EndSession() {
  if (session_ == nullptr) return OkStatus();
  const Status closed = session_->Close();
  for (const auto& hook : hooks_) hook->SessionClosed();
  steps_.clear();
  session_ = nullptr;
  return closed;
}

StatusOr<std::unique_ptr<MonitoredTrainingSession>> MonitoredTrainingSession::Start(
    const MonitoredTrainingSessionOptions& options) {
  const CalledFrom caller(options.location);
  TENON_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<MonitoredTrainingSession> session(new MonitoredTrainingSession(options));
  TENON_RETURN_IF_ERROR(session->Build());
  {
    const StopSignal::EndsAtOnce ends;
    TENON_RETURN_IF_ERROR(session->ProbeDirectory());
  }
  while (true) {
    const Status opened = session->Open();
    if (opened.ok()) {
      if (session->stop_ && options.notice) {
        options.notice(StrCat("training had ended already, at step ", session->global_step_));
      }
      return session;
    }
    if (!session->Recovers(opened) || session->ShouldStop()) return opened;
    const StopSignal::EndsAtOnce ends;
    TENON_RETURN_IF_ERROR(session->Pause(opened));
  }
}

Output MonitoredTrainingSession::StepBeforeItCounts(const VariableEntry& counter) {
  // A fetch of the counter would show the updates of its step. TensorFlow's hooks read a copy, too,
  // and keep it in this collection.
  std::vector<Endpoint>& known = graph_.Collection("global_step_read_op_cache");
  if (known.empty()) {
    const OutsideFlowScopes names;
    const NoControlDependencies always;
    const ColocateWith beside(counter.ref);
    known.push_back(Snapshot(ReadVariable(counter), {.name = "global_step_read"}));
  }
  const std::vector<OutEdge> edges = counter.ref->out_edges();
  for (const OutEdge& e : edges) {
    if (e.input == kControlSlot) continue;
    const OpSchema& op = e.dst->schema();
    const DType taken = e.dst->input_types()[e.input];
    const bool counts = (IsRef(taken) || taken == DType::kResource) && !op.Has(OpTrait::kAssigns) &&
                        !op.Has(OpTrait::kReadsVariable) && op.flow == FlowKind::kPlain &&
                        !op.is_identity;
    // A loop's nodes cannot wait for what is outside of it.
    if (counts && LoopFrameOf(graph_, *e.dst).empty()) {
      graph_.AddControlEdge(known[0].node, e.dst);
    }
  }
  return known[0];
}

Status MonitoredTrainingSession::Build() {
  const std::vector<Endpoint>& step = graph_.Collection("global_step");
  const VariableEntry* counter = step.empty() ? nullptr : FindVariable(step[0]);
  if (counter != nullptr) global_step_name_ = StepBeforeItCounts(*counter).name();
  hooks_ = options_.hooks;
  const bool saves = !options_.checkpoint_dir.empty();
  Saver* saver = options_.saver;
  if (options_.is_chief) {
    hooks_.insert(hooks_.end(), options_.chief_only_hooks.begin(), options_.chief_only_hooks.end());
  }
  if (saves && counter == nullptr) {
    return InvalidArgument(
        "checkpoints are numbered by the graph's step counter, which it has not: "
        "give GlobalStep() to the optimizer");
  }
  if (saves && saver == nullptr) {
    own_saver_ = std::make_unique<Saver>(
        SaverOptions{.sharded = options_.server != nullptr, .clock = options_.clock});
    saver = own_saver_.get();
  }
  if (saves && options_.is_chief) {
    hooks_.push_back(std::make_shared<CheckpointSaverHook>(
        CheckpointSaverOptions{.directory = options_.checkpoint_dir,
                               .saver = saver,
                               .steps = options_.save_checkpoint_steps,
                               .period = options_.save_checkpoint_period,
                               .notice = options_.notice}));
  }
  if (saves && options_.is_chief && options_.save_summaries_steps > 0) {
    hooks_.push_back(std::make_shared<SummarySaverHook>(SummarySaverOptions{
        .directory = options_.checkpoint_dir, .steps = options_.save_summaries_steps}));
  }
  if (options_.log_step_count_steps > 0) {
    hooks_.push_back(
        std::make_shared<StepCounterHook>(options_.log_step_count_steps, options_.notice));
  }
  for (const auto& hook : hooks_) TENON_RETURN_IF_ERROR(hook->Begin());
  SessionStarterOptions starter;
  starter.is_chief = options_.is_chief;
  starter.saver = saver;
  starter.checkpoint_dir = options_.checkpoint_dir;
  starter.init_fn = options_.init_fn;
  starter.ready_deadline = options_.ready_deadline;
  starter.notice = options_.notice;
  starter.clock = options_.clock;
  starter.location = options_.location;
  if (!options_.is_chief && options_.server != nullptr) {
    starter.chief_life = [server = options_.server] {
      const auto own = DeviceName::Parse(server->task());
      return server->AskIfAlive(server->cluster().HasTask(kChiefJob, 0) ? kChiefJob : *own->job, 0);
    };
  }
  starter_ = std::make_unique<SessionStarter>(starter);
  return graph_.error();
}

Status MonitoredTrainingSession::ProbeDirectory() const {
  const Saver* const saver = options_.saver != nullptr ? options_.saver : own_saver_.get();
  const bool saves = options_.is_chief && !options_.checkpoint_dir.empty();
  if (!saves) return OkStatus();
  if (options_.server == nullptr || saver == nullptr) {
    return CheckCheckpointDirectory(options_.checkpoint_dir);
  }
  return ProbeCheckpointDirectory(
      options_.checkpoint_dir, saver->devices(),
      [this](const Graph& graph) { return options_.server->MakeSession(graph); });
}

Status MonitoredTrainingSession::Open() {
  const auto open = [&] {
    return options_.server == nullptr
               ? MakeLocalSession(graph_,
                                  {.clock = options_.clock, .communicator = options_.communicator})
               : options_.server->MakeSession(graph_);
  };
  {
    std::optional<StopSignal::EndsAtOnce> ends;
    if (!ShouldStop()) ends.emplace();
    TENON_ASSIGN_OR_RETURN(session_, starter_->Prepare(open, has_trained_));
    has_trained_ = true;
  }
  const auto prepare = [&]() -> Status {
    const RunContext context = Context();
    TENON_ASSIGN_OR_RETURN(global_step_, context.ReadGlobalStep());
    for (const auto& hook : hooks_) {
      TENON_RETURN_IF_ERROR(hook->AfterCreateSession(context, global_step_));
      if (options_.communicator != nullptr) {
        // The hook may have given the variables the values of rank 0.
        TENON_ASSIGN_OR_RETURN(global_step_, context.ReadGlobalStep());
      }
    }
    // A hook that waited for others' end has let them go on.
    if (stop_) {
      TENON_ASSIGN_OR_RETURN(global_step_, context.ReadGlobalStep());
    }
    return OkStatus();
  };
  const Status prepared = prepare();
  if (!prepared.ok()) EndSession().IgnoreError();
  return prepared;
}

Status MonitoredTrainingSession::Pause(const Status& error) {
  if (recoveries_ >= options_.max_recoveries) return error;
  const auto pause = std::min<std::chrono::milliseconds>(
      kLongestPause, options_.first_pause * (1LL << std::min(recoveries_, 10)));
  ++recoveries_;
  if (options_.notice) {
    options_.notice(
        StrCat("recovering in ", pause.count() / 1000.0, " s from: ", OneLine(error.ToString())));
  }
  Clock& clock = *options_.clock;
  const Clock::Time until = clock.Now() + pause;
  const bool ends = ShouldStop();
  while (clock.Now() < until && ends == ShouldStop()) {
    clock.SleepFor(std::chrono::milliseconds(20));
  }
  return OkStatus();
}

StatusOr<PreparedStep*> MonitoredTrainingSession::StepFor(const Session::Feeds& feeds,
                                                          const std::vector<std::string>& fetches,
                                                          const std::vector<std::string>& targets) {
  // Programs run few kinds of steps; one that runs many forgets them now and then.
  constexpr size_t kMostSteps = 64;
  std::string key;
  std::vector<std::string> fed;
  for (const auto& [name, value] : feeds) {
    StrAppend(&key, name, ";");
    fed.push_back(name);
  }
  for (const auto* names : {&fetches, &targets}) {
    StrAppend(&key, "|");
    for (const std::string& name : *names) StrAppend(&key, name, ";");
  }
  if (const auto found = steps_.find(key); found != steps_.end()) return found->second.get();
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<PreparedStep> step,
                         session_->Prepare(fed, fetches, targets));
  if (steps_.size() >= kMostSteps) steps_.clear();
  return (steps_[key] = std::move(step)).get();
}

Status MonitoredTrainingSession::RunOnce(const StepFeeds& feeds, const StepTensors& fetches,
                                         const StepTensors& targets, std::vector<Tensor>* fetched) {
  TENON_RETURN_IF_ERROR(session_->Check(feeds, fetches, targets));
  // What hooks do, such as a save, is not given up.
  std::optional<SignalWatch::Work> hooks(std::in_place, watch_.get(), "the hooks before the step");
  const RunContext context = Context(targets.names());
  Session::Feeds fed = feeds.pairs();
  std::vector<std::string> names = fetches.names(), runs = targets.names();
  StepOptions step;
  std::vector<NodeTrace> trace;
  std::vector<size_t> begins;
  for (const auto& hook : hooks_) {
    RunArguments arguments;
    TENON_RETURN_IF_ERROR(hook->BeforeRun(context, &arguments));
    fed.insert(fed.end(), arguments.feeds.begin(), arguments.feeds.end());
    begins.push_back(names.size());
    names.insert(names.end(), arguments.fetches.begin(), arguments.fetches.end());
    runs.insert(runs.end(), arguments.targets.begin(), arguments.targets.end());
    if (arguments.trace) step.trace = &trace;
  }
  begins.push_back(names.size());
  if (!global_step_name_.empty()) names.push_back(global_step_name_);
  TENON_ASSIGN_OR_RETURN(PreparedStep* const prepared, StepFor(fed, names, runs));
  std::vector<Tensor> values_fed;
  for (auto& [name, value] : fed) values_fed.push_back(std::move(value));
  hooks.reset();
  TENON_RETURN_IF_ERROR(Watched([&] { return prepared->Run(values_fed, fetched, step); }));
  hooks.emplace(watch_.get(), "the hooks after the step");
  RunValues values;
  values.trace = std::move(trace);
  if (!global_step_name_.empty()) {
    TENON_ASSIGN_OR_RETURN(values.global_step, StepOf(fetched->back()));
    global_step_ = values.global_step;
  }
  for (size_t i = 0; i < hooks_.size(); ++i) {
    values.fetched.assign(fetched->begin() + begins[i], fetched->begin() + begins[i + 1]);
    TENON_RETURN_IF_ERROR(hooks_[i]->AfterRun(context, values));
  }
  if (stop_) {
    // The last step may have read the counter before it counted itself.
    TENON_ASSIGN_OR_RETURN(global_step_, context.ReadGlobalStep());
  }
  fetched->resize(fetches.names().size());
  return OkStatus();
}

void MonitoredTrainingSession::EndOfData(const Status& why) {
  stop_ = has_ended_ = true;
  if (options_.communicator != nullptr) {
    has_ended_together_ = true;
    const Status together = options_.communicator->BeginAnew(why);
    if (!together.ok() && options_.notice) {
      options_.notice(StrCat("the data are at their end, and the ranks do not go on together: ",
                             OneLine(together.ToString())));
    }
  }
  if (session_ == nullptr) return;
  // The last whole step may have read the counter before it counted itself.
  if (const StatusOr<int64_t> step = Context().ReadGlobalStep(); step.ok()) global_step_ = *step;
}

Status MonitoredTrainingSession::Watched(const std::function<Status()>& run) {
  // A session of this process alone would take its variables with it.
  std::function<void()> give_up = [this] { session_->Close().IgnoreError(); };
  if (options_.server == nullptr) give_up = nullptr;
  SignalWatch::Work step(watch_.get(), "the step that runs", std::move(give_up));
  const Status status = run();
  given_up_ = step.End();
  return status;
}

Status MonitoredTrainingSession::Recovering(const std::function<Status()>& attempt) {
  if (closed_) return FailedPrecondition("Session is closed.");
  while (true) {
    Status status = session_ == nullptr ? Open() : OkStatus();
    if (status.ok()) {
      status = attempt();
      if (given_up_) return EndGivenUp();
    }
    if (status.ok()) {
      recoveries_ = 0;
      return status;
    }
    if (status.code() == StatusCode::kOutOfRange) EndOfData(status);
    if (!Recovers(status)) return status;
    EndSession().IgnoreError();
    if (ShouldStop()) return status;
    const StopSignal::EndsAtOnce ends;
    TENON_RETURN_IF_ERROR(Pause(status));
  }
}

StatusOr<std::vector<Tensor>> MonitoredTrainingSession::Run(const StepFeeds& feeds,
                                                            const StepTensors& fetches,
                                                            const StepTensors& targets) {
  std::vector<Tensor> fetched;
  TENON_RETURN_IF_ERROR(CheckGoesOn());
  TENON_RETURN_IF_ERROR(Recovering([&] { return RunOnce(feeds, fetches, targets, &fetched); }));
  has_ended_ = has_ended_together_ = stop_;
  return fetched;
}

StatusOr<std::vector<Tensor>> MonitoredTrainingSession::RunWithoutHooks(
    const StepFeeds& feeds, const StepTensors& fetches, const StepTensors& targets) {
  std::vector<Tensor> fetched;
  TENON_RETURN_IF_ERROR(Recovering([&]() -> Status {
    return Watched([&]() -> Status {
      TENON_ASSIGN_OR_RETURN(fetched, session_->Run(feeds, fetches, targets));
      return OkStatus();
    });
  }));
  return fetched;
}

Status MonitoredTrainingSession::CheckGoesOn() {
  if (has_ended_ && !closed_) {
    return FailedPrecondition("Run called even after should_stop requested: training ended at ",
                              "step ", global_step_, "; ask ShouldStop before each step");
  }
  if (signal_ == nullptr || StopSignal::received() == 0 || closed_) return OkStatus();
  // Ranks agree first on the step that is their last, which may be some steps away.
  if (options_.communicator != nullptr) return OkStatus();
  const Clock::Time now = options_.clock->Now();
  if (!signalled_) signalled_ = now;
  if (now - *signalled_ < options_.interrupted_step_limit) return OkStatus();
  return Interrupted("steps went on for ", " and ShouldStop was not asked", [this] {
    stop_ = true;
    return session_ == nullptr ? OkStatus() : End();
  });
}

Status MonitoredTrainingSession::EndGivenUp() {
  EndSession().IgnoreError();
  return Interrupted("the step did not end within ", " and was given up", [this] {
    SignalWatch::Work opening(watch_.get(), "a session to save with");
    const Status opened = Open();
    opening.End();
    stop_ = true;
    return opened.ok() ? End() : opened;
  });
}

Status MonitoredTrainingSession::Interrupted(std::string_view what, std::string_view consequence,
                                             const std::function<Status()>& save) {
  closed_ = interrupted_ = true;
  const std::string ended =
      StrCat("ended by ", StopSignal::received() == SIGINT ? "SIGINT" : "SIGTERM", ": ", what,
             options_.interrupted_step_limit.count() / 1000.0, " s", consequence);
  if (!options_.is_chief || options_.checkpoint_dir.empty()) {
    EndSession().IgnoreError();
    stop_ = true;
    return Cancelled(ended, options_.is_chief ? "; no checkpoints are written" : "");
  }
  const Status saved = save();
  return Cancelled(ended, saved.ok()
                              ? StrCat("; what was trained until step ", global_step_, " is saved")
                              : StrCat("; nothing is saved: ", saved.ToString()));
}

Status MonitoredTrainingSession::End() {
  const SignalWatch::Work at_end(watch_.get(), "the last checkpoint");
  const RunContext context = Context();
  StatusOr<int64_t> step = context.ReadGlobalStep();
  Status status = step.status();
  if (step.ok()) global_step_ = *step;
  for (const auto& hook : hooks_) status.Update(hook->End(context));
  status.Update(EndSession());
  return status;
}

Status MonitoredTrainingSession::Close() {
  if (std::exchange(closed_, true)) return OkStatus();
  interrupted_ = !stop_ && StopSignal::received() != 0;
  stop_ = true;
  if (session_ == nullptr) return OkStatus();
  Status status = End();
  if (options_.communicator != nullptr && !has_ended_together_ && status.ok()) {
    // The steps have ended on this rank alone, perhaps: the others are told.
    return options_.communicator->BeginAnew(
        OutOfRange("its training has ended, at step ", global_step_));
  }
  // What was trained since the last checkpoint is worth another try.
  const int64_t trained = global_step_;
  while (Recovers(status)) {
    TENON_RETURN_IF_ERROR(Pause(status));
    status = Open();
    if (!status.ok()) continue;
    if (options_.is_chief && !interrupted_ && global_step_ < trained) {
      EndSession().IgnoreError();
      return DataLoss(
          "training had ended at step ", trained,
          ", but the variables were lost before they were saved, and are those of step ",
          global_step_, " again: the same training goes on from there");
    }
    status = End();
  }
  return status;
}

}  // namespace tenon
