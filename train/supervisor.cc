// SPDX-License-Identifier: Apache-2.0
#include "train/supervisor.h"

#include <optional>

#include "data/files/file.h"
#include "train/saver/probe.h"
#include "train/sessions/session_hook.h"
#include "train/variables.h"

namespace tenon {

Supervisor::Supervisor(SupervisorOptions options)
    : options_(std::move(options)),
      starter_({.is_chief = options_.is_chief,
                .saver = options_.saver,
                .checkpoint_dir = options_.checkpoint_dir,
                .recovery_wait = options_.recovery_wait,
                .ready_deadline = options_.ready_deadline,
                .notice = options_.notice,
                .notice_interval = options_.notice_interval,
                .clock = options_.clock,
                .location = options_.location}),
      failures_(options_.notice) {
  if (options_.stop_on_signals) signal_ = std::make_unique<StopSignal>();
  const std::vector<Endpoint>& step = CurrentBuilding().graph->Collection("global_step");
  const VariableEntry* counter = step.empty() ? nullptr : FindVariable(step[0]);
  if (counter != nullptr) step_ = Output(counter->value).name();
}

Supervisor::~Supervisor() {
  stop_ = true;
  work_.reset();
  saving_ = nullptr;
}

bool Supervisor::saves() const {
  return options_.is_chief && options_.saver != nullptr && !options_.checkpoint_dir.empty();
}

StatusOr<std::shared_ptr<Session>> Supervisor::PrepareOrWaitForSession(const SessionOpener& open) {
  if (saves() && session_ == nullptr) {
    TENON_RETURN_IF_ERROR(CheckCheckpointDirectory(options_.checkpoint_dir));
  }
  std::optional<StopSignal::EndsAtOnce> ends;
  if (!ShouldStop()) ends.emplace();
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, starter_.Prepare(open));
  if (saves() && session_ == nullptr) {
    TENON_ASSIGN_OR_RETURN(
        saving_, options_.threads->Start([this, session] { SavePeriodically(*session); }));
    session_ = session;
  }
  return session;
}

StatusOr<std::shared_ptr<Session>> Supervisor::PrepareOrWaitForSession(Server& server,
                                                                       const Graph& graph) {
  if (saves() && session_ == nullptr && options_.saver->sharded()) {
    std::optional<StopSignal::EndsAtOnce> ends;
    if (!ShouldStop()) ends.emplace();
    TENON_RETURN_IF_ERROR(
        ProbeCheckpointDirectory(options_.checkpoint_dir, options_.saver->devices(),
                                 [&](const Graph& probe) { return server.MakeSession(probe); }));
  }
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<Session> session,
                         PrepareOrWaitForSession([&] { return server.MakeSession(graph); }));
  if (signal_ != nullptr && watch_ == nullptr) {
    watch_ = std::make_unique<SignalWatch>(
        SignalWatch::Options{.server = &server,
                             .notice = options_.notice,
                             .checkpoint_dir = options_.checkpoint_dir,
                             .clock = options_.clock,
                             .threads = options_.threads});
    work_.emplace(watch_.get(), "the steps that run");
  }
  return session;
}

StatusOr<int64_t> Supervisor::Step(Session& session) const {
  if (step_.empty()) return -1;
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session.Run({}, {step_}));
  return StepOf(values[0]);
}

Status Supervisor::Save(Session& session, int64_t step) {
  SaveOptions save;
  if (step >= 0) save.global_step = step;
  const std::string path = JoinPath(options_.checkpoint_dir, options_.checkpoint_basename);
  TENON_ASSIGN_OR_RETURN(last_saved_, options_.saver->Save(session, path, save));
  return OkStatus();
}

void Supervisor::SavePeriodically(Session& session) {
  Clock& clock = *options_.clock;
  Clock::Time next = clock.Now() + options_.save_model_period;
  while (!stop_) {
    clock.SleepFor(std::chrono::milliseconds(20));
    if (clock.Now() < next) continue;
    const auto step = Step(session);
    why_stopped_ = failures_.Count(step.ok() ? Save(session, *step) : step.status(),
                                   step.value_or(-1), clock.Now());
    if (!why_stopped_.ok()) stop_ = true;
    next = clock.Now() + options_.save_model_period;
  }
}

Status Supervisor::Stop() {
  stop_ = true;
  work_.reset();
  const SignalWatch::Work at_end(watch_.get(), "the last checkpoint");
  if (saving_ == nullptr) return OkStatus();
  saving_ = nullptr;
  const auto step = Step(*session_);
  Status last = step.status();
  if (last.ok())
    last = failures_.Insist(*step, *options_.clock, [&] { return Save(*session_, *step); });
  session_ = nullptr;
  if (last.ok()) {
    saved_step_ = *step;
    if (options_.notice) options_.notice(StrCat("saved ", last_saved_));
  }
  last.Update(why_stopped_);
  return last;
}

}  // namespace tenon
