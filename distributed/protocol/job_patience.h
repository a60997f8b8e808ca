// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace tenon {

/// How long the end of a job is waited for.
struct JobPatience {
  /// From the last sign of life of a task until it counts as failed; 0: for ever, and nobody is
  /// asked for signs of life.
  std::chrono::milliseconds silence{0};
  /// With it, how long one may take to come, of which nobody has heard, counted from the last sign
  /// of life of any task of its job, and one to return to which there is no connection any more;
  /// 0: as long as `silence`, and 30 s or half of a lower `silence`.
  std::chrono::milliseconds coming{0};
};

}  // namespace tenon
