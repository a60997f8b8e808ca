// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tenon {

/// While one lives, the first SIGINT (ctrl-C) or SIGTERM of the process asks for the end of
/// training instead of ending the process; the second one does what it did before. What one has
/// asked for is forgotten when the next StopSignal is made while none lives. Thread-safe.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal's number, or 0.
  static int received();
};

}  // namespace tenon
