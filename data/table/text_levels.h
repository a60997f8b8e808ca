// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The distinct texts of a column, by codes from 0 on in the order in which they came. Used by one
/// thread at a time.
class TextLevels {
 public:
  /// The code of `text`, a new one for a new text.
  int32_t Code(std::string_view text);
  /// The code of `text`; -1 when it has none.
  int32_t Find(std::string_view text) const;
  const std::string& text(int32_t code) const { return texts_[code]; }
  int32_t size() const { return static_cast<int32_t>(texts_.size()); }

 private:
  static constexpr size_t kFirstSlots = 64;
  /// Texts of at most so many bytes are told apart by their hash and length alone.
  static constexpr size_t kShort = 8;

  struct Slot {
    uint64_t hash = 0;
    uint32_t length = 0;
    int32_t code = -1;
  };

  /// The place in `slots_`, which has some, of the text or of what may be it.
  const Slot& SlotOf(std::string_view text, uint64_t hash) const;
  int32_t Add(std::string_view text, uint64_t hash);
  void Grow();

  std::vector<Slot> slots_;  // as many as a power of two, half of them at most in use; or none
  std::vector<std::string> texts_;
};

}  // namespace tenon
