// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"

namespace tenon::tools {

/// How far long work is: on a terminal a bar on the error stream that is drawn over itself, ten
/// times a second, and never longer than the terminal is wide; elsewhere a plain line on standard
/// output every ten percent, and at least every minute; every 5 s where there are no percents.
///
///   training [=========>          ]  46%  5060/11000  412/s  0:14 left  cost 1.2345
class Progress {
 public:
  /// `done` of the total are done already, which counts for no rate. A total below 0 is unknown:
  /// then there are no percents. Without `plain_lines`, nothing is said where there is no terminal.
  Progress(std::string what, int64_t total, int64_t done = 0, bool plain_lines = true);

  /// `done` of the total are done; more than the total counts as the total. `detail` is called only
  /// when something is printed.
  void Advance(int64_t done, absl::FunctionRef<std::string()> detail);
  /// Removes the bar.
  void Finish();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  std::chrono::seconds PlainPause() const;
  bool IsDue(int64_t done, SteadyTime now);
  std::string Line(int64_t done, const std::string& detail) const;

  const std::string what_;
  const int64_t total_, begin_;
  const bool terminal_, plain_lines_;
  const SteadyTime start_;
  SteadyTime next_;
  int64_t last_tenth_;
};

}  // namespace tenon::tools
