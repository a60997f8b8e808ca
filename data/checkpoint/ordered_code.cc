// SPDX-License-Identifier: Apache-2.0
#include "data/checkpoint/ordered_code.h"

#include <array>
#include <bit>

namespace tenon {

void AppendOrderedNumber(std::string* out, uint64_t value) {
  const int bytes = (std::bit_width(value) + 7) / 8;
  out->push_back(static_cast<char>(bytes));
  for (int i = bytes - 1; i >= 0; --i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void AppendOrderedString(std::string* out, std::string_view text) {
  for (const char c : text) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->append(std::string_view("\0\1", 2));
}

void AppendOrderedSigned(std::string* out, int64_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  // n bytes have 8n bits: n for the length in unary, one for the sign, 7n - 1 for the value.
  const int bits = std::bit_width(magnitude);
  const int n = bits / 7 + 1;
  // Ten bytes hold the value sign-extended; the encoding is the last n of them with the header
  // flipped into their first bits.
  std::array<unsigned char, 10> buffer;
  for (int i = 0; i < 10; ++i) {
    const int shift = 8 * (9 - i);
    buffer[i] = static_cast<unsigned char>(shift >= 64 ? (value < 0 ? 0xff : 0) : value >> shift);
  }
  for (int i = 0; i < n; ++i) {  // the unary length, from the first bit on
    buffer[10 - n + i / 8] ^= static_cast<unsigned char>(0x80 >> (i % 8));
  }
  out->append(reinterpret_cast<const char*>(buffer.data()) + 10 - n, n);
}

}  // namespace tenon
