// SPDX-License-Identifier: Apache-2.0
#include "train/supervisor.h"

#include <thread>

namespace tenon {

Supervisor::Supervisor(SupervisorOptions options) : options_(std::move(options)) {
  const CalledFrom caller(options_.location);
  init_ = GlobalVariablesInitializer()->name();
  report_ = ReportUninitializedVariables().name();
}

StatusOr<std::string> Supervisor::Missing(Session& session) const {
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> names, session.Run({}, {report_}));
  return Join(names[0].flat<TString>(), ", ");
}

StatusOr<std::unique_ptr<Session>> Supervisor::PrepareOrWaitForSession(
    const std::function<StatusOr<std::unique_ptr<Session>>()>& open) const {
  const auto begin = std::chrono::steady_clock::now();
  auto next_notice = begin + options_.notice_interval;
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
    const auto now = std::chrono::steady_clock::now();
    if (now - begin >= options_.ready_deadline) {
      return DeadlineExceeded("the chief did not initialise these variables within ",
                              options_.ready_deadline.count() / 1000.0, " s: ", missing);
    }
    if (options_.notice && now >= next_notice) {
      next_notice = now + options_.notice_interval;
      const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - begin).count();
      options_.notice(StrCat("waiting for the chief, ", waited, " s now, to initialise ", missing));
    }
    std::this_thread::sleep_for(options_.recovery_wait);
  }
}

StatusOr<std::unique_ptr<Session>> Supervisor::PrepareOrWaitForSession(Server& server,
                                                                       const Graph& graph) const {
  return PrepareOrWaitForSession([&] { return server.MakeSession(graph); });
}

}  // namespace tenon
