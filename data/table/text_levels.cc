// SPDX-License-Identifier: Apache-2.0
#include "data/table/text_levels.h"

#include <cstring>
#include <functional>

namespace tenon {
namespace {

constexpr size_t kPacked = 8;

/// Up to 8 bytes as a number, which with their count tells them from all others.
uint64_t Packed(std::string_view text) {
  const size_t n = text.size();
  const char* const p = text.data();
  if (n >= 4) {
    uint32_t low = 0, high = 0;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    return low | uint64_t{high} << 32;
  }
  if (n == 0) return 0;
  // One byte, or two, or three: the first, the middle one, the last.
  const auto byte = [&](size_t i) { return uint64_t{static_cast<unsigned char>(p[i])}; };
  return byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16;
}

/// A bijection, so that different numbers stay different. Two products, since the halves of a
/// packed text of 4 bytes are the same.
uint64_t Mixed(uint64_t x) {
  x *= 0x9e3779b97f4a7c15;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  return x ^ x >> 32;
}

/// A hash that tells texts of at most kPacked bytes from all others of their length.
uint64_t HashOf(std::string_view text) {
  return text.size() <= kPacked ? Mixed(Packed(text)) : Mixed(std::hash<std::string_view>()(text));
}

}  // namespace

const TextLevels::Slot& TextLevels::SlotOf(std::string_view text, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.code < 0 || (slot.hash == hash && slot.length == text.size() &&
                          (text.size() <= kShort || texts_[slot.code] == text))) {
      return slot;
    }
  }
}

int32_t TextLevels::Code(std::string_view text) {
  const uint64_t hash = HashOf(text);
  if (slots_.empty()) slots_.resize(kFirstSlots);
  const int32_t code = SlotOf(text, hash).code;
  return code < 0 ? Add(text, hash) : code;
}

int32_t TextLevels::Find(std::string_view text) const {
  return slots_.empty() ? -1 : SlotOf(text, HashOf(text)).code;
}

int32_t TextLevels::Add(std::string_view text, uint64_t hash) {
  if (2 * (texts_.size() + 1) > slots_.size()) Grow();
  const int32_t code = size();
  texts_.emplace_back(text);
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i].code >= 0) i = (i + 1) & mask;
  slots_[i] = {hash, static_cast<uint32_t>(text.size()), code};
  return code;
}

void TextLevels::Grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.code < 0) continue;
    size_t i = slot.hash & mask;
    while (slots_[i].code >= 0) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

}  // namespace tenon
