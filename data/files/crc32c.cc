// SPDX-License-Identifier: Apache-2.0
#include "data/files/crc32c.h"

#include <array>
#include <cstring>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

namespace tenon {
namespace {

#ifdef __SSE4_2__

uint32_t Update(uint32_t state, const unsigned char* p, size_t n) {
  // Three independent streams would hide the instruction's latency; one already gives several GB/s,
  // more than any disk these files lie on.
  uint64_t wide = state;
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  state = static_cast<uint32_t>(wide);
  for (; n > 0; --n) state = _mm_crc32_u8(state, *p++);
  return state;
}

#else

using Table = std::array<std::array<uint32_t, 256>, 8>;

/// Entry [k][b]: what byte b does to the state when k more bytes follow it (slicing by 8).
constexpr Table MakeTable() {
  Table table{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    table[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (uint32_t b = 0; b < 256; ++b) {
      table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xff];
    }
  }
  return table;
}
constexpr Table kTable = MakeTable();

uint32_t Update(uint32_t state, const unsigned char* p, size_t n) {
  for (; n >= 8; n -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= state;
    state = 0;
    for (size_t k = 0; k < 8; ++k) state ^= kTable[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; n > 0; --n) state = (state >> 8) ^ kTable[0][(state ^ *p++) & 0xff];
  return state;
}

#endif

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size) {
  return ~Update(~crc, static_cast<const unsigned char*>(data), size);
}

}  // namespace tenon
