// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon {

/// While one lives, the first SIGINT (ctrl-C) or SIGTERM of the process asks for the end of
/// training instead of ending the process. A second one, a second or more after it, does what it
/// did before. One that came when there was none yet is forgotten. Thread-safe.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal's number, or 0; 0 while none lives.
  static int received();
};

}  // namespace tenon
