// SPDX-License-Identifier: Apache-2.0
#include "train/supervisor.h"

#include "data/file.h"
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
                .location = options_.location}) {
  const std::vector<Endpoint>& step = CurrentBuilding().graph->Collection("global_step");
  const VariableNodes* counter = step.empty() ? nullptr : FindVariable(step[0]);
  if (counter != nullptr) step_ = Output(counter->value).name();
}

Supervisor::~Supervisor() {
  stop_ = true;
  if (saving_.joinable()) saving_.join();
}

StatusOr<std::shared_ptr<Session>> Supervisor::PrepareOrWaitForSession(const SessionOpener& open) {
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, starter_.Prepare(open));
  if (options_.is_chief && options_.saver != nullptr && !options_.checkpoint_dir.empty() &&
      session_ == nullptr) {
    TENON_RETURN_IF_ERROR(MakeFolders(options_.checkpoint_dir));
    session_ = session;
    saving_ = std::thread([this] { SavePeriodically(*session_); });
  }
  return session;
}

StatusOr<std::shared_ptr<Session>> Supervisor::PrepareOrWaitForSession(Server& server,
                                                                       const Graph& graph) {
  return PrepareOrWaitForSession([&] { return server.MakeSession(graph); });
}

Status Supervisor::Save(Session& session) {
  SaveOptions save;
  if (!step_.empty()) {
    TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> values, session.Run({}, {step_}));
    TENON_ASSIGN_OR_RETURN(save.global_step, StepOf(values[0]));
  }
  const std::string path = JoinPath(options_.checkpoint_dir, options_.checkpoint_basename);
  return options_.saver->Save(session, path, save).status();
}

void Supervisor::SavePeriodically(Session& session) {
  auto next = std::chrono::steady_clock::now() + options_.save_model_period;
  while (!stop_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (std::chrono::steady_clock::now() < next) continue;
    const Status saved = Save(session);
    if (!saved.ok() && options_.notice) options_.notice(saved.ToString());
    MutexLock lock(mu_);
    saved_.Update(saved);
    next = std::chrono::steady_clock::now() + options_.save_model_period;
  }
}

Status Supervisor::Stop() {
  stop_ = true;
  if (!saving_.joinable()) return OkStatus();
  saving_.join();
  const Status last = Save(*session_);
  session_ = nullptr;
  MutexLock lock(mu_);
  saved_.Update(last);
  return saved_;
}

}  // namespace tenon
