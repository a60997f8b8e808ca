// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon {

/// The numbers of a master's steps: not negative, none twice, and as good as random, so that steps
/// of different masters do not meet at their workers. Thread-safe.
class StepIds {
 public:
  /// `seed`: from a source of entropy.
  explicit StepIds(uint64_t seed) : next_(seed) {}

  int64_t Next() {
    // SplitMix64 (Steele, Lea and Flood 2014): one output each of a counter's values.
    constexpr uint64_t kGamma = 0x9E3779B97F4A7C15;
    uint64_t z = next_.fetch_add(kGamma, std::memory_order_relaxed) + kGamma;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    z ^= z >> 31;
    return static_cast<int64_t>(z & ((uint64_t{1} << 56) - 1));
  }

 private:
  std::atomic<uint64_t> next_;
};

}  // namespace tenon
