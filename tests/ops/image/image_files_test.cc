// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/gradient/gradients.h"
#include "ops/array/constants.h"
#include "ops/image/image_ops.h"
#include "ops/register.h"
#include "tests/testing/graph_runner.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;

Tensor Bytes(const Shape& shape) {
  Tensor t(DType::kUInt8, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<uint8_t>()[i] = static_cast<uint8_t>(7 * i);
  return t;
}

TEST(ImageFilesTest, PngComesBackAsItWas) {
  for (const int64_t channels : {1, 2, 3, 4}) {
    const Tensor image = Bytes({5, 9, channels});
    const Tensor file = RunOpOrDie("EncodePng", {image});
    EXPECT_TRUE(RunOpOrDie("DecodePng", {file}).Equals(image));
    EXPECT_EQ(RunOpOrDie("DecodeImage", {file}, {{"channels", 3}}).shape(), Shape({5, 9, 3}));
    EXPECT_EQ(RunOpOrDie("DecodePng", {file}, {{"dtype", DType::kUInt16}}).data<uint16_t>()[1],
              image.data<uint8_t>()[1] * 257);
  }
}

TEST(ImageFilesTest, JpegComesBackAlmostAsItWas) {
  Tensor image(DType::kUInt8, {24, 31, 3});
  for (int64_t i = 0; i < image.num_elements(); ++i) {
    image.data<uint8_t>()[i] = static_cast<uint8_t>(i / (31 * 3) * 4 + 60);
  }
  const Tensor file = RunOpOrDie("EncodeJpeg", {image}, {{"xmp_metadata", "abc"}});
  const Tensor back = RunOpOrDie("DecodeJpeg", {file});
  ASSERT_EQ(back.shape(), image.shape());
  for (int64_t i = 0; i < image.num_elements(); ++i) {
    EXPECT_NEAR(back.data<uint8_t>()[i], image.data<uint8_t>()[i], 3);
  }
  EXPECT_THAT(RunOpOrDie("ExtractJpegShape", {file}).flat<int32_t>(), ElementsAre(24, 31, 3));
  const Tensor window = RunOpOrDie("DecodeAndCropJpeg", {file, Tensor::Vector({4, 2, 3, 5})});
  ASSERT_EQ(window.shape(), Shape({3, 5, 3}));
  EXPECT_EQ(window.data<uint8_t>()[0], back.data<uint8_t>()[(4 * 31 + 2) * 3]);
}

/// Whatever bytes come: pixels or an error.
TEST(ImageFilesTest, DamagedFilesEndWell) {
  const Tensor image = Bytes({6, 5, 3});
  for (const char* const op : {"EncodePng", "EncodeJpeg"}) {
    const std::string good(RunOpOrDie(op, {image}).scalar<TString>());
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
      for (const std::string& file : {bad, good.substr(0, i)}) {
        const OpResult r = RunOp("DecodeImage", {Tensor::Scalar(file)});
        EXPECT_TRUE(r.status.ok() || r.status.code() == StatusCode::kInvalidArgument ||
                    r.status.code() == StatusCode::kResourceExhausted ||
                    r.status.code() == StatusCode::kUnimplemented)
            << r.status;
      }
    }
    EXPECT_FALSE(
        RunOp("DecodeImage", {Tensor::Scalar(good.substr(0, good.size() / 2))}).status.ok());
  }
}

TEST(ImageFilesTest, ATruncatedJpegMayBeTaken) {
  const std::string good(RunOpOrDie("EncodeJpeg", {Bytes({64, 64, 3})}).scalar<TString>());
  const Tensor half = Tensor::Scalar(good.substr(0, good.size() / 2));
  EXPECT_FALSE(RunOp("DecodeJpeg", {half}).status.ok());
  EXPECT_FALSE(RunOp("DecodeJpeg", {half}, {{"try_recover_truncated", true}}).status.ok());
  EXPECT_OK(
      RunOp("DecodeJpeg", {half}, {{"try_recover_truncated", true}, {"acceptable_fraction", 0.1f}})
          .status);
}

TEST(ImageFilesTest, SmallFilesMayNotClaimHugeImages) {
  std::string file(RunOpOrDie("EncodePng", {Bytes({1, 1, 1})}).scalar<TString>());
  file.replace(16, 8, std::string("\0\1\0\0\0\1\0\0", 8));
  EXPECT_EQ(RunOp("DecodePng", {Tensor::Scalar(file)}).status.code(), StatusCode::kInvalidArgument);
  std::string bmp(
      "BM\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f\1\0\x18\0\0\0", 32);
  EXPECT_EQ(RunOp("DecodeBmp", {Tensor::Scalar(bmp)}).status.code(), StatusCode::kInvalidArgument);
}

TEST(ResizeTest, LinearAndNearest) {
  const Tensor image = Tensor::Of<float>({1, 2, 2, 1}, {0, 2, 4, 6}), size = Tensor::Vector({3, 3});
  EXPECT_THAT(RunOpOrDie("ResizeBilinear", {image, size}, {{"align_corners", true}}).flat<float>(),
              ElementsAre(0, 1, 2, 2, 3, 4, 4, 5, 6));
  EXPECT_THAT(RunOpOrDie("ResizeNearestNeighbor", {image, size}).flat<float>(),
              ElementsAre(0, 0, 2, 0, 0, 2, 4, 4, 6));
  EXPECT_FALSE(RunOp("ResizeBilinear", {image, Tensor::Vector({3, 0})}).status.ok());
}

/// Each pixel's weights add up to those of the pixels made of it.
TEST(ResizeTest, TheGradientOfLinearResizing) {
  Graph graph(AllOps());
  GraphBuilding building(graph);
  const Output image = Const(Tensor::Of<float>({1, 2, 2, 1}, {0, 2, 4, 6}));
  const Output resized =
      ResizeBilinear(image, Const(Tensor::Vector({3, 3})), {.align_corners = true});
  const Output dx = Gradients(resized, image)[0];
  ASSERT_OK(graph.error());
  GraphRunner runner(graph);
  const auto values = runner.Run({dx}, {});
  ASSERT_OK(values.status());
  EXPECT_THAT((*values)[0].flat<float>(), ElementsAre(2.25f, 2.25f, 2.25f, 2.25f));
}

TEST(SuppressionTest, BoxesLikeABetterOneAreLeftOut) {
  const Tensor boxes =
      Tensor::Of<float>({4, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 2, 2, 3, 3, 3, 3, 2, 2});
  const Tensor scores = Tensor::Vector({0.5f, 0.9f, 0.7f, 0.1f}), half = Tensor::Scalar(0.5f);
  const auto run = [&](int most, float low) {
    return RunOp("NonMaxSuppressionV3",
                 {boxes, scores, Tensor::Scalar(most), half, Tensor::Scalar(low)});
  };
  EXPECT_THAT(run(9, 0).outputs[0].flat<int32_t>(), ElementsAre(1, 2));
  EXPECT_THAT(run(9, 0.8f).outputs[0].flat<int32_t>(), ElementsAre(1));
  EXPECT_EQ(run(0, 0).outputs[0].num_elements(), 0);
  EXPECT_FALSE(run(-1, 0).status.ok());
}

}  // namespace
}  // namespace tenon::testing
