// SPDX-License-Identifier: Apache-2.0
#include "train/layers/salted_seed.h"

#include <array>
#include <bit>
#include <cmath>

#include "core/base/strings.h"

namespace tenon {
namespace {

using Words = std::array<uint32_t, 4>;

/// One block of 64 bytes of MD5 (RFC 1321, section 3.4).
void Digest(const uint8_t* block, Words* digest) {
  constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  std::array<uint32_t, 16> words;
  for (int i = 0; i < 16; ++i) {
    const uint8_t* const bytes = block + 4 * i;
    words[i] = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
  }
  auto [a, b, c, d] = *digest;
  for (int i = 0; i < 64; ++i) {
    const int round = i / 16;
    const uint32_t mixed = round == 0   ? (b & c) | (~b & d)
                           : round == 1 ? (d & b) | (~d & c)
                           : round == 2 ? b ^ c ^ d
                                        : c ^ (b | ~d);
    const int place = (round == 0   ? i
                       : round == 1 ? 5 * i + 1
                       : round == 2 ? 3 * i + 5
                                    : 7 * i) %
                      16;
    const auto sine = static_cast<uint32_t>(std::floor(std::abs(std::sin(i + 1.0)) * 0x1p32));
    const uint32_t next = b + std::rotl(a + mixed + sine + words[place], kShifts[round][i % 4]);
    a = d;
    d = c;
    c = b;
    b = next;
  }
  *digest = {(*digest)[0] + a, (*digest)[1] + b, (*digest)[2] + c, (*digest)[3] + d};
}

/// The first four bytes of the MD5 digest, the first one highest.
uint32_t FirstOfMd5(std::string text) {
  const uint64_t bits = 8 * text.size();
  text += '\x80';
  while (text.size() % 64 != 56) text += '\0';
  for (int i = 0; i < 8; ++i) text += static_cast<char>(bits >> (8 * i) & 0xff);
  Words digest{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (size_t at = 0; at < text.size(); at += 64) {
    Digest(reinterpret_cast<const uint8_t*>(text.data()) + at, &digest);
  }
  const uint32_t first = digest[0];
  return first << 24 | (first & 0xff00) << 8 | (first >> 8 & 0xff00) | first >> 24;
}

}  // namespace

int64_t SaltedSeed(int64_t seed, const std::string& salt) {
  return seed == 0 ? 0 : FirstOfMd5(StrCat(seed, salt)) & 0x7fffffff;
}

}  // namespace tenon
