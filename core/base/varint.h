// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Numbers of variable length, as protobuf and LevelDB write them: seven bits a byte, the lowest
// first, the top bit set in all but the last.

namespace tenon {

inline void AppendVarint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

/// Takes a number off the front of `*in`; false, with `*in` as it was, when none is there.
inline bool TakeVarint(std::string_view* in, uint64_t* value) {
  *value = 0;
  for (size_t i = 0; i < in->size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>((*in)[i]);
    *value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      in->remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace tenon
