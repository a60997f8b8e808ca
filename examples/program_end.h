// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iostream>
#include <string>

#include "tenon/tenon.h"

// How the examples end: as the command `tenon` does.

namespace tenon {

/// The exit code of a program that has ended so: 1 after an error, which is printed, but for one of
/// all ranks, which RunRank has told; 128 and the signal's number when a signal has ended a
/// training in good order, and 0.
inline int ExitCode(const Status& status) {
  if (!status.ok()) {
    if (!IsOfAllRanks(status)) std::cerr << status << '\n';
    return 1;
  }
  const int signal = StopSignal::last_received();
  return signal == 0 ? 0 : 128 + signal;
}

/// The line about a training that a signal has ended after `step`; `checkpoint_dir` is empty when
/// nothing is saved.
inline std::string StoppedAfter(int64_t step, const std::string& checkpoint_dir) {
  return StrCat("stopped by a signal after step ", step,
                checkpoint_dir.empty() ? "" : "; the same command goes on from there");
}

}  // namespace tenon
