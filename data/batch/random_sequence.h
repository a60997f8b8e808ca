// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tenon {

/// Random numbers that follow from a seed alone: SplitMix64 (Steele, Lea and Flood, 2014), one
/// 64-bit state, every seed as good as another. For the order of data; ops have generators of their
/// own.
class RandomSequence {
 public:
  explicit RandomSequence(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// In [0, limit), which is above 0. The upper half of a 128-bit product has a bias of at most
  /// limit / 2^64.
  uint64_t Below(uint64_t limit) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * limit) >> 64);
  }

 private:
  uint64_t state_;
};

}  // namespace tenon
