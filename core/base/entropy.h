// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon {

/// Where the numbers come from that tell things apart which nobody counts together: incarnations of
/// devices, handles of sessions, numbers of steps. The machine's cannot be foretold; a simulation
/// has its own. Thread-safe.
class Entropy {
 public:
  virtual ~Entropy() = default;
  /// 64 random bits.
  virtual uint64_t Next() = 0;
  /// The same, but not 0.
  uint64_t NextNonZero() {
    uint64_t number = 0;
    while (number == 0) number = Next();
    return number;
  }
};

}  // namespace tenon
