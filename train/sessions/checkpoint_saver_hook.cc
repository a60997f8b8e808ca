// SPDX-License-Identifier: Apache-2.0
#include "core/build/building.h"
#include "data/files/file.h"
#include "train/sessions/hooks.h"

namespace tenon {

CheckpointSaverHook::CheckpointSaverHook(CheckpointSaverOptions options)
    : options_(std::move(options)),
      timer_(options_.steps, options_.period),
      failures_(options_.notice) {}

Status CheckpointSaverHook::AfterCreateSession(const RunContext& context, int64_t global_step) {
  if (!recovered_) {
    recovered_ = true;
    TENON_RETURN_IF_ERROR(MakeFolders(options_.directory));
    const StatusOr<CheckpointPaths> state = GetCheckpointState(options_.directory);
    if (state.ok()) {
      options_.saver->RecoverLastCheckpoints(state->all);
      const std::string latest = StrCat(options_.basename, "-", global_step);
      if (NameOf(state->latest) == latest) saved_ = global_step;
    }
  }
  if (saved_ != global_step) {
    // The first save of all tells whether one can be made there.
    return saved_ < 0 ? Save(context, global_step) : SaveOrGoOn(context, global_step);
  }
  timer_.Triggered(global_step, context.clock().Now());
  return OkStatus();
}

Status CheckpointSaverHook::AfterRun(const RunContext& context, const RunValues& values) {
  const Clock::Time now = context.clock().Now();
  if (!timer_.IsDue(values.global_step + 1, now)) return OkStatus();
  // The step may have read the counter before it counted itself.
  TENON_ASSIGN_OR_RETURN(const int64_t step, context.ReadGlobalStep());
  return timer_.IsDue(step, now) ? SaveOrGoOn(context, step) : OkStatus();
}

Status CheckpointSaverHook::End(const RunContext& context) {
  TENON_ASSIGN_OR_RETURN(const int64_t step, context.ReadGlobalStep());
  if (step == saved_) return OkStatus();
  return failures_.Insist(step, context.clock(), [&] { return Save(context, step); });
}

Status CheckpointSaverHook::SaveOrGoOn(const RunContext& context, int64_t step) {
  const Status saved = Save(context, step);
  // A task that has died is the session's to recover from.
  if (IsRecoverable(saved)) return saved;
  const Clock::Time now = context.clock().Now();
  timer_.Triggered(step, now);
  return failures_.Count(saved, step, now);
}

void CheckpointSaverHook::LookForOthers() {
  if (last_.empty() || others_are_told_ || !options_.notice) return;
  const StatusOr<CheckpointPaths> state = GetCheckpointState(options_.directory);
  if (!state.ok() || NameOf(state->latest) == NameOf(last_)) return;
  others_are_told_ = true;
  options_.notice(StrCat("another process saves into '", options_.directory, "' too: '",
                         state->latest, "' is there, '", last_,
                         "' was the last of this one; each training wants a folder of its own"));
}

Status CheckpointSaverHook::Save(const RunContext& context, int64_t step) {
  LookForOthers();
  TENON_ASSIGN_OR_RETURN(
      const std::string prefix,
      options_.saver->Save(context.session(), JoinPath(options_.directory, options_.basename),
                           {.global_step = step}));
  saved_ = step;
  last_ = prefix;
  timer_.Triggered(step, context.clock().Now());
  if (options_.notice) options_.notice(StrCat("saved ", prefix));
  return OkStatus();
}

}  // namespace tenon
