// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace tenon::testing {

/// Choices read from a fuzzer's bytes, front to back. Where the bytes have ended every choice is the
/// first one, so targets put the plainest first.
class FuzzBytes {
 public:
  explicit FuzzBytes(absl::Span<const uint8_t> data) : rest_(data) {}

  bool empty() const { return rest_.empty(); }
  /// The next sizeof(T) bytes, zeros behind the end.
  template <typename T>
  T Raw() {
    T value{};
    const size_t n = std::min(sizeof(T), rest_.size());
    if (n > 0) std::memcpy(&value, rest_.data(), n);
    rest_.remove_prefix(n);
    return value;
  }
  /// In [0, n); n <= 65536.
  int Below(int n) {
    if (n <= 1) return 0;
    return n <= 256 ? Raw<uint8_t>() % n : Raw<uint16_t>() % n;
  }
  /// Whether something happens that is done `percent` times in a hundred.
  bool Chance(int percent) { return Below(100) > 99 - percent; }
  template <typename T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[Below(static_cast<int>(choices.size()))];
  }
  /// At most `max_size` bytes.
  std::string Text(int max_size) {
    std::string text(Below(max_size + 1), '\0');
    for (char& c : text) c = static_cast<char>(Raw<uint8_t>());
    return text;
  }

 private:
  absl::Span<const uint8_t> rest_;
};

}  // namespace tenon::testing
