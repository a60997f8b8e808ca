// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tenon {

/// A hash of words, which is the same in every process of machines with one order of bytes; after
/// SplitMix64.
class Digest {
 public:
  void Add(std::string_view text) {
    Add(static_cast<int64_t>(text.size()));
    while (!text.empty()) {
      int64_t word = 0;
      const size_t bytes = std::min(text.size(), sizeof(word));
      std::memcpy(&word, text.data(), bytes);
      Add(word);
      text.remove_prefix(bytes);
    }
  }
  void Add(int64_t number) {
    hash_ = (hash_ ^ static_cast<uint64_t>(number)) + 0x9e3779b97f4a7c15u;
    hash_ = (hash_ ^ (hash_ >> 30)) * 0xbf58476d1ce4e5b9u;
    hash_ ^= hash_ >> 27;
  }
  uint32_t value() const { return static_cast<uint32_t>(hash_ ^ (hash_ >> 32)); }

 private:
  uint64_t hash_ = 0;
};

}  // namespace tenon
