// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <random>

#include "ops/maths.h"

namespace tenon {

/// Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
/// 2011): each value of a 128-bit counter gives a block of four words, so any place of the stream
/// is reached at once. Seeded as TensorFlow's random ops are: `seed` is the key, `seed2` the
/// counter's high half.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  TENON_HD Philox(uint64_t seed, uint64_t seed2) : Philox(seed, 0, seed2) {}
  /// With both halves of the counter.
  TENON_HD Philox(uint64_t key, uint64_t low, uint64_t high) : key_(key), low_(low), high_(high) {}
  /// The generator for a node's attributes: both 0 stand for seeds that nobody can tell.
  static Philox FromSeeds(int64_t seed, int64_t seed2) {
    if (seed != 0 || seed2 != 0) return Philox(seed, seed2);
    std::random_device device;
    const auto next = [&device] { return uint64_t{device()} << 32 | device(); };
    const uint64_t key = next();
    return Philox(key, next());
  }

  uint64_t key() const { return key_; }
  /// The counter's low half.
  uint64_t low() const { return low_; }
  /// The counter's high half.
  uint64_t seed2() const { return high_; }

  /// The next block.
  TENON_HD Block Next() {
    const Block block = Generate();
    Skip(1);
    return block;
  }
  /// The next kBatch blocks: word i of block b is words[i][b].
  static constexpr int kBatch = 64;
  using Batch = uint32_t[4][kBatch];
  void NextBatch(Batch& words) {
    for (int b = 0; b < kBatch; ++b) {
      const uint64_t low = low_ + b, high = high_ + (low < low_ ? 1 : 0);
      words[0][b] = static_cast<uint32_t>(low);
      words[1][b] = static_cast<uint32_t>(low >> 32);
      words[2][b] = static_cast<uint32_t>(high);
      words[3][b] = static_cast<uint32_t>(high >> 32);
    }
    TENON_SIMD
    for (int b = 0; b < kBatch; ++b) {
      const Block block = Rounds({words[0][b], words[1][b], words[2][b], words[3][b]});
      words[0][b] = block[0];
      words[1][b] = block[1];
      words[2][b] = block[2];
      words[3][b] = block[3];
    }
    Skip(kBatch);
  }
  /// Passes over `blocks` blocks.
  TENON_HD void Skip(uint64_t blocks) {
    low_ += blocks;
    if (low_ < blocks) ++high_;
  }

 private:
  TENON_HD Block Generate() const {
    return Rounds({static_cast<uint32_t>(low_), static_cast<uint32_t>(low_ >> 32),
                   static_cast<uint32_t>(high_), static_cast<uint32_t>(high_ >> 32)});
  }
  TENON_HD Block Rounds(Block c) const {
    constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
    constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
    constexpr int kRounds = 10;
    uint32_t k0 = static_cast<uint32_t>(key_), k1 = static_cast<uint32_t>(key_ >> 32);
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t p0 = uint64_t{kMultiplier0} * c[0], p1 = uint64_t{kMultiplier1} * c[2];
      c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += kWeyl0;
      k1 += kWeyl1;
    }
    return c;
  }

  uint64_t key_;
  uint64_t low_;
  uint64_t high_;
};

}  // namespace tenon
