// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace tenon::testing {

/// Measures the processor time that the process takes, which other processes do not lengthen: for
/// tests that something is not quadratic, with sizes at which that would take minutes.
class CpuTime {
 public:
  double seconds() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

 private:
  const std::clock_t start_ = std::clock();
};

/// What linear time does not reach, under sanitizers either.
inline constexpr double kLinearSeconds = 20;

}  // namespace tenon::testing
