// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Numbers and text as bytes whose bytewise order is the order of the values (OrderedCode), of which
// the keys of tensor slices in checkpoints are made.

namespace tenon {

/// A length byte, then the value in as few big-endian bytes as it needs; 0 is one zero byte.
void AppendOrderedNumber(std::string* out, uint64_t value);
/// The text with 00 as 00 ff and ff as ff 00, then 00 01.
void AppendOrderedString(std::string* out, std::string_view text);
/// A signed number: below 64 in size one byte, 80 xor value; else big-endian, with the number of
/// bytes in unary before its bits, all inverted for negative numbers.
void AppendOrderedSigned(std::string* out, int64_t value);

}  // namespace tenon
