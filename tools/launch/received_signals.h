// SPDX-License-Identifier: Apache-2.0
#pragma once

// The signals of the process that launches tasks. They are only counted when they come, and
// interrupt what waits; what they ask for is done by who looks.

namespace tenon::tools {

/// SIGINT, SIGTERM and, unless it was ignored (nohup), SIGHUP no longer end this process, SIGTSTP
/// no longer stops it, and writing to a pipe that nobody reads is an error (EPIPE).
void CatchSignals();

/// A file descriptor that can be read from (poll) when a child has ended since the last call of
/// ForgetChildEnds(), from CatchSignals() on; -1 where the system had none to give.
int ChildEnds();
void ForgetChildEnds();

/// How many of SIGINT, SIGTERM and SIGHUP have come, and the first of them, or 0.
int ReceivedSignals();
int FirstReceivedSignal();

/// Whether SIGTSTP (ctrl-Z) has come since the last call.
bool TakeSuspension();

}  // namespace tenon::tools
