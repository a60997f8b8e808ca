// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cfloat>
#include <limits>

#include "proto/summary.pb.h"
#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

Summary Parsed(const Tensor& t) {
  Summary summary;
  EXPECT_TRUE(summary.ParseFromString(std::string(t.scalar<TString>())));
  return summary;
}

TEST(SummaryOps, AScalarSummaryHasAValuePerElement) {
  const Summary summary =
      Parsed(RunOpOrDie("ScalarSummary", {Tensor::Vector<std::string>({"a", "b"}),
                                          Tensor::Vector<int64_t>({3, -4})}));
  ASSERT_EQ(summary.value_size(), 2);
  EXPECT_EQ(summary.value(0).tag(), "a");
  EXPECT_EQ(summary.value(1).simple_value(), -4);
  EXPECT_THAT(RunOp("ScalarSummary", {Tensor::Scalar("a"), Tensor::Vector<float>({1})}).status,
              IsError(StatusCode::kInvalidArgument, "not the same shape: [] != [1] (tag 'a')"));
}

TEST(SummaryOps, AHistogramHasTensorFlowsBuckets) {
  const Summary summary = Parsed(RunOpOrDie(
      "HistogramSummary", {Tensor::Scalar("h"), Tensor::Vector<float>({0, 0, 1, -1, 2.5f})}));
  const HistogramProto& h = summary.value(0).histo();
  EXPECT_EQ(h.min(), -1);
  EXPECT_EQ(h.max(), 2.5);
  EXPECT_EQ(h.num(), 5);
  EXPECT_EQ(h.sum(), 2.5);
  EXPECT_EQ(h.sum_squares(), 8.25);
  double count = 0;
  for (const double b : h.bucket()) count += b;
  EXPECT_EQ(count, 5);
  // No two empty buckets in a row, and the last limit is the largest double.
  for (int i = 1; i < h.bucket_size(); ++i) {
    EXPECT_TRUE(h.bucket(i) != 0 || h.bucket(i - 1) != 0);
    EXPECT_LT(h.bucket_limit(i - 1), h.bucket_limit(i));
  }
  EXPECT_EQ(h.bucket_limit(h.bucket_limit_size() - 1), DBL_MAX);
}

TEST(SummaryOps, AHistogramOfNothingHasOneEmptyBucket) {
  const Summary summary =
      Parsed(RunOpOrDie("HistogramSummary", {Tensor::Scalar("h"), Tensor(DType::kFloat, {0})}));
  const HistogramProto& h = summary.value(0).histo();
  EXPECT_EQ(h.min(), DBL_MAX);
  EXPECT_EQ(h.max(), -DBL_MAX);
  ASSERT_EQ(h.bucket_size(), 1);
  EXPECT_EQ(h.bucket(0), 0);
  EXPECT_EQ(h.bucket_limit(0), DBL_MAX);
}

TEST(SummaryOps, AHistogramTakesTheLargestNumbersButNoNanOrInfinity) {
  EXPECT_OK(
      RunOp("HistogramSummary", {Tensor::Scalar("h"), Tensor::Vector<double>({DBL_MAX, -DBL_MAX})})
          .status);
  EXPECT_THAT(RunOp("HistogramSummary", {Tensor::Scalar("h"), Tensor::Vector<float>({NAN})}).status,
              IsError(StatusCode::kInvalidArgument, "Nan in summary histogram for: op"));
  EXPECT_THAT(
      RunOp("HistogramSummary", {Tensor::Scalar("h"), Tensor::Vector<float>({INFINITY})}).status,
      IsError(StatusCode::kInvalidArgument, "Infinity in summary histogram for: op"));
}

TEST(SummaryOps, MergeKeepsAllValuesAndRefusesEqualTags) {
  const Tensor a = RunOpOrDie("ScalarSummary", {Tensor::Scalar("a"), Tensor::Scalar(1.0f)});
  const Tensor b = RunOpOrDie("ScalarSummary", {Tensor::Scalar("b"), Tensor::Scalar(2.0f)});
  const Summary merged = Parsed(RunOpOrDie("MergeSummary", {a, b}));
  ASSERT_EQ(merged.value_size(), 2);
  EXPECT_EQ(merged.value(1).tag(), "b");
  EXPECT_THAT(RunOp("MergeSummary", {a, a}).status,
              IsError(StatusCode::kInvalidArgument, "Duplicate tag a found in summary inputs "));
  EXPECT_THAT(RunOp("MergeSummary", {Tensor::Scalar("\xff")}).status,
              IsError(StatusCode::kInvalidArgument, "Could not parse"));
}

TEST(SummaryOps, ImagesArePngFiles) {
  const auto images = Tensor::Of<float>({2, 1, 2, 1}, {0, 0.5f, -1, 1});
  Summary summary = Parsed(RunOpOrDie("ImageSummary", {Tensor::Scalar("a"), images}));
  ASSERT_EQ(summary.value_size(), 2);
  const auto pixels = [&summary](int i) {
    const std::string& file = summary.value(i).image().encoded_image_string();
    const Tensor image = RunOpOrDie("DecodePng", {Tensor::Scalar(file)});
    return std::vector<int>(image.data<uint8_t>(), image.data<uint8_t>() + image.num_elements());
  };
  EXPECT_EQ(summary.value(0).tag(), "a/image/0");
  EXPECT_EQ(summary.value(0).image().width(), 2);
  EXPECT_EQ(summary.value(0).image().colorspace(), 1);
  EXPECT_EQ(pixels(0), std::vector({0, 255}));
  EXPECT_EQ(pixels(1), std::vector({1, 255}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  summary = Parsed(RunOpOrDie(
      "ImageSummary", {Tensor::Scalar("a"), Tensor::Of<float>({1, 1, 2, 3}, {nan, 0, 0, 1, 2, 4})},
      {{"max_images", 1}}));
  EXPECT_EQ(summary.value(0).tag(), "a/image");
  EXPECT_EQ(pixels(0), std::vector({255, 0, 0, 63, 127, 255}));
  EXPECT_FALSE(RunOp("ImageSummary", {Tensor::Scalar("a"), Tensor(DType::kUInt8, {1, 2, 2, 2})})
                   .status.ok());
}

TEST(SummaryOps, SoundsAreWavFiles) {
  const Summary summary =
      Parsed(RunOpOrDie("AudioSummaryV2", {Tensor::Scalar("a"), Tensor::Of<float>({1, 2}, {0, 1}),
                                           Tensor::Scalar(8000.4f)}));
  ASSERT_EQ(summary.value_size(), 1);
  const Summary::Audio& audio = summary.value(0).audio();
  EXPECT_EQ(summary.value(0).tag(), "a/audio/0");
  EXPECT_EQ(audio.length_frames(), 2);
  EXPECT_EQ(audio.content_type(), "audio/wav");
  const OpResult r = RunOp("DecodeWav", {Tensor::Scalar(audio.encoded_audio_string())});
  ASSERT_OK(r.status);
  EXPECT_EQ(r.outputs[1].scalar<int32_t>(), 8000);
  EXPECT_FALSE(RunOp("AudioSummaryV2",
                     {Tensor::Scalar("a"), Tensor::Of<float>({1, 2}, {0, 1}), Tensor::Scalar(0.0f)})
                   .status.ok());
}

TEST(SummaryOps, TensorsAsTheyAre) {
  const Tensor texts = Tensor::Vector<std::string>({"x", "y"});
  Summary summary = Parsed(
      RunOpOrDie("TensorSummaryV2", {Tensor::Scalar("a"), texts, Tensor::Scalar("\x12\x01t")}));
  EXPECT_EQ(summary.value(0).tag(), "a");
  EXPECT_EQ(summary.value(0).metadata().display_name(), "t");
  EXPECT_EQ(summary.value(0).tensor().string_val(1), "y");
  summary = Parsed(RunOpOrDie("TensorSummary", {Tensor::Vector<float>({1, 2})}));
  EXPECT_NE(summary.value(0).node_name(), "");
  EXPECT_EQ(summary.value(0).tensor().tensor_content().size(), 8);
}

}  // namespace
}  // namespace tenon::testing
