// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

std::string Number16(int n) { return {static_cast<char>(n & 255), static_cast<char>(n >> 8)}; }

/// Four colours out of a table of red, green, blue and white.
struct GifFrame {
  int left = 0, top = 0, width = 0, height = 0;
  std::vector<int> colors;
  int transparent = -1;
  bool interlaced = false;
};

/// The frame as blocks. The table is cleared after every two colours, so that codes have three
/// bits.
std::string Block(const GifFrame& f) {
  std::string block;
  if (f.transparent >= 0) {
    block = std::string("!\xf9\x04\x01\0\0", 6) + static_cast<char>(f.transparent) + '\0';
  }
  block += "," + Number16(f.left) + Number16(f.top) + Number16(f.width) + Number16(f.height);
  block += f.interlaced ? '\x40' : '\0';
  block += '\2';
  std::string data;
  uint32_t waiting = 0;
  int bits = 0;
  const auto put = [&](int code) {
    waiting |= static_cast<uint32_t>(code) << bits;
    for (bits += 3; bits >= 8; bits -= 8, waiting >>= 8) data += static_cast<char>(waiting);
  };
  for (size_t i = 0; i < f.colors.size(); ++i) {
    if (i % 2 == 0) put(4);
    put(f.colors[i]);
  }
  put(5);
  data += static_cast<char>(waiting);
  block += static_cast<char>(data.size());
  return block + data + '\0';
}

std::string Gif(const std::vector<GifFrame>& frames) {
  std::string file = "GIF89a" + Number16(9) + Number16(9) + std::string("\x81\0\0", 3);
  file += std::string("\xff\0\0\0\xff\0\0\0\xff\xff\xff\xff", 12);
  for (const GifFrame& f : frames) file += Block(f);
  return file + ";";
}

/// The frames with a letter for each pixel.
std::vector<std::string> Letters(const Tensor& frames) {
  const int64_t size = frames.dim(1) * frames.dim(2);
  std::vector<std::string> letters;
  const uint8_t* pixel = frames.data<uint8_t>();
  for (int64_t i = 0; i < frames.dim(0); ++i) {
    letters.emplace_back();
    for (int64_t p = 0; p < size; ++p, pixel += 3) {
      letters.back() += pixel[0] && pixel[1] ? 'w'
                        : pixel[0]           ? 'r'
                        : pixel[1]           ? 'g'
                        : pixel[2]           ? 'b'
                                             : '-';
    }
  }
  return letters;
}

TEST(GifTest, FramesAreDrawnOverThoseBefore) {
  const std::string file = Gif({{0, 0, 3, 2, {0, 1, 2, 3, 3, 3}},
                                {1, 1, 1, 1, {0}},
                                {0, 0, 3, 2, {1, 1, 1, 2, 2, 2}, 1},
                                {2, 1, 2, 2, {3, 3, 3, 3}}});
  const Tensor image = RunOpOrDie("DecodeGif", {Tensor::Scalar(file)});
  EXPECT_EQ(image.shape(), (Shape{4, 2, 3, 3}));
  EXPECT_THAT(Letters(image), ElementsAre("rgbwww", "rgbwrw", "rgbbbb", "rgbbbw"));
}

TEST(GifTest, TheFirstFrameIsDrawnOverNothing) {
  const std::string file = Gif({{1, 0, 1, 1, {0}}, {0, 0, 3, 1, {1, 2, 1}, 1}});
  const Tensor image = RunOpOrDie("DecodeGif", {Tensor::Scalar(file)});
  EXPECT_THAT(Letters(image), ElementsAre("-r-", "-b-"));
}

TEST(GifTest, RowsOfInterlacedFramesComeInFourPasses) {
  const std::string file = Gif({{0, 0, 1, 6, {0, 1, 2, 3, 0, 1}, -1, true}});
  // Rows 0, 4, 2, 1, 3, 5.
  EXPECT_THAT(Letters(RunOpOrDie("DecodeGif", {Tensor::Scalar(file)})), ElementsAre("rwbrgg"));
}

TEST(GifTest, OtherDecodersTakeThemToo) {
  const Tensor one = Tensor::Scalar(Gif({{0, 0, 1, 1, {3}}}));
  const Tensor two = Tensor::Scalar(Gif({{0, 0, 1, 1, {3}}, {0, 0, 1, 1, {1}}}));
  EXPECT_EQ(RunOpOrDie("DecodePng", {one}).shape(), (Shape{1, 1, 3}));
  EXPECT_EQ(RunOpOrDie("DecodeImage", {two}).shape(), (Shape{2, 1, 1, 3}));
  EXPECT_EQ(RunOpOrDie("DecodeImage", {two}, {{"expand_animations", false}}).shape(),
            (Shape{1, 1, 3}));
  EXPECT_THAT(RunOpOrDie("DecodeImage", {two}, {{"dtype", DType::kFloat}}).flat<float>(),
              ElementsAre(1, 1, 1, 0, 1, 0));
  EXPECT_THAT(RunOp("DecodeJpeg", {two}).status,
              IsError(StatusCode::kInvalidArgument, "Got 2 frames"));
  EXPECT_THAT(RunOp("DecodeImage", {one}, {{"channels", 4}}).status,
              IsError(StatusCode::kInvalidArgument, "channels must be 0 or 3 for GIF"));
}

/// Whatever bytes come: pixels or an error.
TEST(GifTest, DamagedFilesEndWell) {
  const GifFrame first{0, 0, 3, 2, {0, 1, 2, 3, 3, 3}, -1, true};
  const std::string good = Gif({first, {1, 1, 1, 1, {0}, 2}});
  // Nothing need come after a frame.
  const size_t needed = Gif({first}).size() - 1;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const OpResult r = RunOp("DecodeGif", {Tensor::Scalar(bad)});
      EXPECT_TRUE(r.status.ok() || r.status.code() == StatusCode::kInvalidArgument) << r.status;
    }
    const OpResult cut = RunOp("DecodeGif", {Tensor::Scalar(good.substr(0, i))});
    if (i < needed) EXPECT_EQ(cut.status.code(), StatusCode::kInvalidArgument) << i;
  }
}

TEST(GifTest, SmallFilesMayNotClaimHugeFrames) {
  const Tensor file = Tensor::Scalar(Gif({{0, 0, 65535, 65535, {0, 1, 2}}}));
  EXPECT_THAT(RunOp("DecodeGif", {file}).status,
              IsError(StatusCode::kInvalidArgument, "bytes for a frame of 65535 x 65535"));
}

}  // namespace
}  // namespace tenon::testing
