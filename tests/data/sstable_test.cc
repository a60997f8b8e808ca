// SPDX-License-Identifier: Apache-2.0
#include "data/checkpoint/sstable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/varint.h"
#include "data/checkpoint/ordered_code.h"
#include "data/files/crc32c.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

SstableEntries SomeEntries(int n) {
  SstableEntries entries;
  for (int i = 0; i < n; ++i) {
    entries.emplace_back(StrCat("key/", absl::Dec(i, absl::kZeroPad8)), std::string(i % 50, 'v'));
  }
  return entries;
}

/// The bytes with the trailer that follows every block.
std::string Block(std::string bytes, char type = 0) {
  bytes += type;
  const uint32_t crc = MaskCrc32c(Crc32c(bytes));
  return bytes.append(reinterpret_cast<const char*>(&crc), 4);
}

/// A table of one data block with that content, whatever it is.
std::string TableOf(const std::string& data) {
  const std::string no_restarts(4, '\0');
  std::string handle;
  AppendVarint(&handle, 0);
  AppendVarint(&handle, data.size());
  std::string index;
  AppendVarint(&index, 0);
  AppendVarint(&index, 1);
  AppendVarint(&index, handle.size());
  index += "z" + handle + no_restarts;
  std::string file = Block(data);
  std::string footer;
  AppendVarint(&footer, 0);
  AppendVarint(&footer, 0);
  AppendVarint(&footer, file.size());
  AppendVarint(&footer, index.size());
  footer.resize(40);
  footer += "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  return file + Block(index) + footer;
}

TEST(SstableTest, WhatIsWrittenIsRead) {
  for (const int n : {0, 1, 17, 30000}) {
    const SstableEntries entries = SomeEntries(n);
    const auto content = WriteSstable(entries);
    ASSERT_TRUE(content.ok()) << content.status();
    const auto back = ReadSstable(*content);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, entries);
  }
}

TEST(SstableTest, KeysOutOfOrderAreRefused) {
  EXPECT_FALSE(WriteSstable({{"b", ""}, {"a", ""}}).ok());
  EXPECT_FALSE(WriteSstable({{"a", ""}, {"a", ""}}).ok());
}

TEST(SstableTest, DamageAnywhereIsDataLoss) {
  const std::string content = *WriteSstable(SomeEntries(100));
  std::mt19937 random(5);
  for (size_t i = 0; i < content.size(); ++i) {
    std::string damaged = content;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 + random() % 255));
    if (auto back = ReadSstable(damaged); back.ok()) {  // a byte of padding
      EXPECT_EQ(*back, SomeEntries(100)) << i;
    }
    EXPECT_EQ(ReadSstable(content.substr(0, i)).status().code(), StatusCode::kDataLoss);
  }
}

TEST(SstableTest, LengthsThatOverflowAreRefused) {
  // The sum of the two lengths is small in 32 bits.
  std::string data;
  AppendVarint(&data, 0);
  AppendVarint(&data, 0xfffffff0u);
  AppendVarint(&data, 0x20u);
  data += std::string(64, 'x') + std::string(4, '\0');
  EXPECT_THAT(std::string(Message(ReadSstable(TableOf(data)).status())),
              HasSubstr("unreadable entries"));
}

TEST(SstableTest, SharedPrefixesCannotTakeAllMemory) {
  std::string data;
  AppendVarint(&data, 0);
  AppendVarint(&data, 100000);
  AppendVarint(&data, 0);
  data += std::string(100000, 'k');
  for (int i = 0; i < 20000; ++i) {
    AppendVarint(&data, 100000 + i);
    AppendVarint(&data, 1);
    AppendVarint(&data, 0);
    data += 'x';
  }
  data += std::string(4, '\0');
  EXPECT_THAT(std::string(Message(ReadSstable(TableOf(data)).status())),
              HasSubstr("unreasonably large"));
}

TEST(SstableTest, ABlockThatIsNamedAgainAndAgainIsRefused) {
  // An empty block gives no keys whose order would tell.
  const std::string no_entries(4, '\0');
  std::string handle, index;
  AppendVarint(&handle, 0);
  AppendVarint(&handle, no_entries.size());
  for (int i = 0; i < 2; ++i) {
    AppendVarint(&index, 0);
    AppendVarint(&index, 1);
    AppendVarint(&index, handle.size());
    index += "z" + handle;
  }
  index += no_entries;
  std::string file = Block(no_entries), footer;
  AppendVarint(&footer, 0);
  AppendVarint(&footer, 0);
  AppendVarint(&footer, file.size());
  AppendVarint(&footer, index.size());
  footer.resize(40);
  footer += "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
  const auto entries = ReadSstable(file + Block(index) + footer);
  EXPECT_EQ(entries.status().code(), StatusCode::kDataLoss);
}

TEST(OrderedCodeTest, NumbersAndTextHaveTheirBytes) {
  const auto number = [](uint64_t v) {
    std::string out;
    AppendOrderedNumber(&out, v);
    return out;
  };
  EXPECT_EQ(number(0), std::string(1, '\0'));
  EXPECT_EQ(number(255), "\x01\xff");
  EXPECT_EQ(number(256), std::string("\x02\x01\x00", 3));
  std::string text;
  AppendOrderedString(&text, std::string_view("a\0\xff", 3));
  EXPECT_EQ(text, std::string("a\x00\xff\xff\x00\x00\x01", 7));
}

TEST(OrderedCodeTest, TheOrderOfBytesIsTheOrderOfSignedNumbers) {
  std::vector<int64_t> values = {INT64_MIN, INT64_MAX, 0};
  for (int shift = 0; shift < 63; ++shift) {
    for (const int64_t d : {-1, 0, 1}) {
      values.push_back((int64_t{1} << shift) + d);
      values.push_back(-(int64_t{1} << shift) + d);
    }
  }
  std::sort(values.begin(), values.end());
  std::string last;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && values[i] == values[i - 1]) continue;
    std::string bytes;
    AppendOrderedSigned(&bytes, values[i]);
    EXPECT_LT(last, bytes) << values[i];
    last = bytes;
  }
}

}  // namespace
}  // namespace tenon
