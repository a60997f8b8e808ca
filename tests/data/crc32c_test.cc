// SPDX-License-Identifier: Apache-2.0
#include "data/files/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace tenon {
namespace {

/// One bit at a time, straight from the definition.
uint32_t Reference(std::string_view data) {
  uint32_t crc = ~0u;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

TEST(Crc32cTest, TheCheckValueIsThatOfTheStandard) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(MaskCrc32c(Crc32c("123456789")), 0xc78ab0e5u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, EveryLengthAndSplitAgreesWithTheDefinition) {
  std::string data;
  for (int i = 0; i < 70; ++i) data += static_cast<char>(i * 37 + 11);
  for (size_t n = 0; n <= data.size(); ++n) {
    const std::string_view part(data.data(), n);
    EXPECT_EQ(Crc32c(part), Reference(part)) << n;
    EXPECT_EQ(ExtendCrc32c(Crc32c(part), data.data() + n, data.size() - n), Reference(data)) << n;
  }
}

}  // namespace
}  // namespace tenon
