// SPDX-License-Identifier: Apache-2.0
#include "data/files/zstd_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <random>
#include <string>

#include "core/base/strings.h"
#include "data/files/byte_stream.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

std::string ZstdFrame(std::string_view text, bool checksum = true) {
  std::string frame(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0);
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return frame;
}

/// A frame that holds no text.
std::string SkippedFrame() { return std::string("\x55\x2a\x4d\x18\x03\0\0\0abc", 11); }

/// A text that compression makes shorter, but not by much.
std::string SomeText(size_t size) {
  std::mt19937 random(1);
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % 8);
  return text;
}

/// The text in `bytes`, read `step` bytes at a time.
StatusOr<std::string> ReadZstd(std::string_view bytes, size_t step = 1000) {
  const auto source = MakeSource(bytes, Compression::kZstd);
  std::string text;
  while (true) {
    const size_t before = text.size();
    EXPECT_GE(source->Bound(), 0);
    text.resize(before + step);
    TENON_ASSIGN_OR_RETURN(const size_t n, source->Read(step, text.data() + before));
    text.resize(before + n);
    if (n < step) return text;
  }
}

TEST(ZstdSourceTest, FramesComeOneAfterTheOther) {
  const std::string a = SomeText(700000), b(1 << 20, 'b');
  const std::string bytes = StrCat(SkippedFrame(), ZstdFrame(a), ZstdFrame(""), ZstdFrame(b, false),
                                   SkippedFrame(), ZstdFrame("c"));
  for (const size_t step : {1000, 4096, 100000, 10000000}) {
    const auto text = ReadZstd(bytes, step);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_TRUE(*text == a + b + "c");
  }
  EXPECT_EQ(*ReadZstd(ZstdFrame("abc"), 1), "abc");
  EXPECT_EQ(*ReadZstd(ZstdFrame("")), "");
  EXPECT_EQ(*ReadZstd(""), "");
}

TEST(ZstdSourceTest, TheBoundIsNeverLess) {
  const std::string text(1 << 22, 'x');
  const std::string bytes = ZstdFrame(text);
  const auto source = MakeSource(std::string_view(bytes), Compression::kZstd);
  std::string out(1 << 20, ' ');
  for (size_t left = text.size(); left > 0; left -= out.size()) {
    EXPECT_GE(source->Bound(), static_cast<int64_t>(left));
    ASSERT_EQ(source->Read(out.size(), out.data()).value(), out.size());
  }
}

TEST(ZstdSourceTest, WhatIsCutShortIsAnErrorWithItsPlace) {
  const std::string first = ZstdFrame("one"), both = first + ZstdFrame(SomeText(500));
  for (size_t size = 1; size < both.size(); ++size) {
    const auto text = ReadZstd(std::string_view(both).substr(0, size));
    if (size == first.size()) {
      EXPECT_EQ(text.value(), "one");
      continue;
    }
    EXPECT_EQ(text.status().code(), StatusCode::kDataLoss);
    EXPECT_EQ(Message(text.status()), StrCat("the compressed data is cut short at byte ", size));
  }
}

TEST(ZstdSourceTest, WhatIsDamagedIsAnErrorWithItsPlace) {
  const std::string first = ZstdFrame("one"), text = SomeText(300);
  const std::string both = first + ZstdFrame(text);
  for (size_t at = 0; at < both.size(); ++at) {
    std::string damaged = both;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const auto read = ReadZstd(damaged);
    // A bit of a header may be one that says nothing.
    if (read.ok()) EXPECT_TRUE(*read == "one" + text || at < 6) << at;
    if (!read.ok()) EXPECT_EQ(read.status().code(), StatusCode::kDataLoss) << at;
  }
  EXPECT_EQ(Message(ReadZstd(first + "padding").status()),
            StrCat("the compressed data is damaged at byte ", first.size(),
                   ": Unknown frame descriptor"));
  std::string large = ZstdFrame(SomeText(1 << 20));
  large[large.size() - 1] ^= 1;
  EXPECT_THAT(Message(ReadZstd(large).status()), HasSubstr("doesn't match checksum"));
}

TEST(ZstdSourceTest, ItsFilesAreFoundByContent) {
  EXPECT_EQ(DetectTextCompression(ZstdFrame("a")), Compression::kZstd);
  EXPECT_EQ(DetectTextCompression(SkippedFrame()), Compression::kZstd);
  EXPECT_EQ(DetectTextCompression("(\xb5/"), Compression::kNone);
  EXPECT_EQ(DetectTextCompression("x^2,y\n"), Compression::kNone);
  EXPECT_EQ(DetectTextCompression("\x1f\x8b\x08"), Compression::kGzip);
}

}  // namespace
}  // namespace tenon
