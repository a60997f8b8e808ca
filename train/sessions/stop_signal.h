// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon {

/// While one lives, the first SIGINT (ctrl-C) or SIGTERM of the process asks for the end of
/// training instead of ending the process. A second one, a second or more after it, does what it
/// did before: in a program with no handler of its own, it ends the process. One that came when
/// there was none yet is forgotten. Thread-safe.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal's number, or 0; 0 while none lives.
  static int received();
  /// The signal that the last one has received, whether it still lives or not; or 0.
  static int last_received();
  /// Does to this process what the signal did before.
  static void DoAsBefore(int number);

  /// While one lives there is nothing that the end of training could save: a signal ends the
  /// process at once, with a line that says so. For waits until a session is open.
  class EndsAtOnce {
   public:
    EndsAtOnce();
    ~EndsAtOnce();
    EndsAtOnce(const EndsAtOnce&) = delete;
    EndsAtOnce& operator=(const EndsAtOnce&) = delete;
  };
};

}  // namespace tenon
