// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "train/sessions/session_hook.h"

namespace tenon {

/// Lets the ranks of a training by allreduce begin with the same values, those of rank 0, which may
/// have restored them, and end with the same step: when a signal asks one rank to stop, all stop
/// after up to 8 steps (they vote about every 10 ms), so that nobody waits for who has gone.
/// For a MonitoredTrainingSession with a communicator, whose `Run` every rank calls as often as the
/// others. Other hooks decide alike on all ranks when training is to end.
std::shared_ptr<SessionHook> KeepRanksInStep();

}  // namespace tenon
