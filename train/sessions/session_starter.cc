// SPDX-License-Identifier: Apache-2.0
#include "train/sessions/session_starter.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "data/checkpoint/tensor_bundle.h"
#include "data/files/file.h"
#include "train/variables.h"

namespace tenon {
namespace {

/// Whether every tensor of the checkpoint can be read.
bool IsWhole(const std::string& prefix) {
  const auto reader = BundleReader::Open(prefix);
  if (!reader.ok()) return false;
  return std::all_of((*reader)->names().begin(), (*reader)->names().end(),
                     [&](const std::string& name) { return (*reader)->Read(name).ok(); });
}

/// Where the latest checkpoint is damaged, whether an older one is whole, for a message; else "".
std::string OlderThatIsWhole(const CheckpointPaths& paths) {
  if (IsWhole(paths.latest)) return "";
  for (auto older = paths.all.rbegin(); older != paths.all.rend(); ++older) {
    if (*older == paths.latest || !IsWhole(*older)) continue;
    return StrCat("the latest checkpoint is damaged; '", *older,
                  "' is whole, and training goes on ", "from it when '",
                  JoinPath(FolderOf(paths.latest), kCheckpointStateFile),
                  "' names it as model_checkpoint_path");
  }
  return "the latest checkpoint is damaged, and no older one of the state file is whole";
}

/// Where the state file is damaged, how to go on, for a message.
std::string InTheStateFilesPlace(const std::string& folder) {
  constexpr std::string_view kIndex = ".index";
  std::vector<std::pair<int64_t, std::string>> by_step;
  const auto names = ListFolder(folder);
  if (!names.ok()) return "";
  for (const std::string& name : *names) {
    if (!name.ends_with(kIndex)) continue;
    const std::string prefix = name.substr(0, name.size() - kIndex.size());
    int64_t step = -1;  // of a name without one
    std::from_chars(prefix.data() + prefix.rfind('-') + 1, prefix.data() + prefix.size(), step);
    by_step.emplace_back(step, prefix);
  }
  std::sort(by_step.rbegin(), by_step.rend());
  for (const auto& [step, name] : by_step) {
    const std::string prefix = JoinPath(folder, name);
    if (!IsWhole(prefix)) continue;
    return StrCat("; '", prefix,
                  "' is whole, and training goes on from it when the file has the line ",
                  "model_checkpoint_path: \"", name, "\"; without the file it begins anew");
  }
  return "; the folder has no checkpoint that is whole";
}

}  // namespace

SessionStarter::SessionStarter(SessionStarterOptions options) : options_(std::move(options)) {
  const CalledFrom caller(options_.location);
  init_ = GlobalVariablesInitializer()->name();
  init_local_ = LocalVariablesInitializer()->name();
  report_ = ReportUninitializedVariables().name();
}

StatusOr<std::string> SessionStarter::Missing(Session& session) const {
  TENON_ASSIGN_OR_RETURN(const std::vector<Tensor> names, session.Run({}, {report_}));
  constexpr int64_t kMostNames = 5;
  const absl::Span<const TString> all = names[0].flat<TString>();
  const int64_t more = static_cast<int64_t>(all.size()) - kMostNames;
  return StrCat(Join(all.first(std::min<size_t>(all.size(), kMostNames)), ", "),
                more > 0 ? StrCat(" and ", more, " more") : "");
}

Status SessionStarter::RestoreOrInitialize(Session& session) const {
  if (options_.saver != nullptr && !options_.checkpoint_dir.empty()) {
    // Without a state file training begins; a checkpoint that is damaged or gone is not passed
    // over.
    const StatusOr<CheckpointPaths> state = GetCheckpointState(options_.checkpoint_dir);
    if (state.ok()) {
      if (const Status restored = options_.saver->Restore(session, state->latest); !restored.ok()) {
        const std::string older = OlderThatIsWhole(*state);
        return older.empty() ? restored : Annotate(restored, older);
      }
      if (options_.notice) options_.notice(StrCat("restored ", state->latest));
      return OkStatus();
    }
    if (state.status().code() == StatusCode::kDataLoss) {
      return AppendToMessage(state.status(), InTheStateFilesPlace(options_.checkpoint_dir));
    }
    if (state.status().code() != StatusCode::kNotFound) return state.status();
  }
  TENON_RETURN_IF_ERROR(session.Run({}, {}, {init_}).status());
  return options_.init_fn ? options_.init_fn(session) : OkStatus();
}

StatusOr<std::unique_ptr<Session>> SessionStarter::Prepare(const SessionOpener& open,
                                                           bool has_trained) const {
  Clock& clock = *options_.clock;
  const Clock::Time begin = clock.Now();
  std::optional<Clock::Time> gone;  // since when the chief is
  auto next_notice = begin + options_.notice_interval;
  TENON_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, open());
  while (true) {
    TENON_ASSIGN_OR_RETURN(std::string missing, Missing(*session));
    if (!missing.empty() && options_.is_chief) {
      TENON_RETURN_IF_ERROR(RestoreOrInitialize(*session));
      TENON_ASSIGN_OR_RETURN(missing, Missing(*session));
      if (!missing.empty()) {
        return FailedPrecondition(
            "variables have no value after ",
            options_.saver == nullptr ? "the initializer: " : "restoring: ", missing);
      }
    }
    if (missing.empty()) {
      TENON_RETURN_IF_ERROR(session->Run({}, {}, {init_local_}).status());
      return session;
    }
    const Clock::Time now = clock.Now();
    if (now - begin >= options_.ready_deadline) {
      return DeadlineExceeded("the chief did not initialise these variables within ",
                              options_.ready_deadline.count() / 1000.0, " s: ", missing);
    }
    if (now >= next_notice) {
      next_notice = now + options_.notice_interval;
      const Status life = options_.chief_life ? options_.chief_life() : OkStatus();
      if (life.code() != StatusCode::kUnavailable) gone.reset();
      if (life.code() == StatusCode::kUnavailable && !gone) gone = now;
      if (has_trained && gone && now - *gone >= options_.chief_return_limit) {
        return DeadlineExceeded("the chief is gone and did not return within ",
                                options_.chief_return_limit.count() / 1000.0,
                                " s: ", Message(life));
      }
      const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - begin).count();
      if (options_.notice) {
        options_.notice(StrCat("waiting for the chief, ", waited, " s now, to initialise ", missing,
                               life.ok() ? "" : StrCat(": ", Message(life))));
      }
    }
    clock.SleepFor(options_.recovery_wait);
  }
}

}  // namespace tenon
