// SPDX-License-Identifier: Apache-2.0
#include "train/supervisor.h"

#include <thread>

#include "core/mutex.h"

namespace tenon {
namespace {

/// While it lives, says now and then what is waited for.
class WaitNotices {
 public:
  explicit WaitNotices(const SupervisorOptions& options) : options_(std::move(options)) {
    if (options_.on_wait) thread_ = std::thread([this] { Work(); });
  }
  ~WaitNotices() {
    {
      MutexLock lock(mu_);
      over_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }
  void SetWhat(std::string what) {
    MutexLock lock(mu_);
    what_ = std::move(what);
  }

 private:
  void Work() {
    const auto start = std::chrono::steady_clock::now();
    auto next = start;
    MutexLock lock(mu_);
    while (!over_) {
      next += options_.notice_interval;
      while (!over_ && std::chrono::steady_clock::now() < next) changed_.WaitUntil(mu_, next);
      if (over_) return;
      options_.on_wait(what_, std::chrono::duration_cast<std::chrono::seconds>(
                                  std::chrono::steady_clock::now() - start));
    }
  }

  const SupervisorOptions& options_;
  Mutex mu_;
  CondVar changed_;
  std::string what_ ABSL_GUARDED_BY(mu_) = "the session to open";
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace

Supervisor::Supervisor(const Scope& scope, const VariableSet& variables, SupervisorOptions options)
    : options_(std::move(options)) {
  const Node* init = variables.Initializer(scope.WithName("init"));
  const Output report = variables.ReportUninitialized(scope);
  if (!scope.ok()) return;
  init_ = init->name();
  report_ = report.name();
}

StatusOr<std::string> Supervisor::Missing(Session& session) const {
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> names, session.Run({}, {report_}));
  return Join(names[0].flat<std::string>(), ", ");
}

StatusOr<std::unique_ptr<Session>> Supervisor::PrepareOrWaitForSession(
    const std::function<StatusOr<std::unique_ptr<Session>>()>& open) const {
  const auto deadline = std::chrono::steady_clock::now() + options_.ready_deadline;
  WaitNotices notices(options_);
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, open());
  while (true) {
    TENON_ASSIGN_OR_RETURN(std::string missing, Missing(*session));
    if (!missing.empty() && options_.is_chief) {
      TENON_RETURN_IF_ERROR(session->Run({}, {}, {init_}).status());
      TENON_ASSIGN_OR_RETURN(missing, Missing(*session));
      if (!missing.empty()) {
        return Internal("the initializer left variables without a value: ", missing);
      }
    }
    if (missing.empty()) return session;
    if (std::chrono::steady_clock::now() >= deadline) {
      return DeadlineExceeded("the chief did not initialise these variables within ",
                              options_.ready_deadline.count() / 1000.0, " s: ", missing);
    }
    if (options_.keep_waiting) TENON_RETURN_IF_ERROR(options_.keep_waiting());
    notices.SetWhat(StrCat("the chief to initialise ", missing));
    std::this_thread::sleep_for(options_.recovery_wait);
  }
}

}  // namespace tenon
