// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/testing/op_runner.h"
#include "tests/testing/status_matchers.h"

namespace tenon::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

TEST(WavTest, SamplesComeBack) {
  const auto audio = Tensor::Of<float>({3, 2}, {0, 0.5f, -1, 2, -3, 0.25f});
  const Tensor file = RunOpOrDie("EncodeWav", {audio, Tensor::Scalar(8000)});
  EXPECT_EQ(file.scalar<TString>().size(), 44 + 12);
  const OpResult r = RunOp("DecodeWav", {file});
  ASSERT_OK(r.status);
  EXPECT_THAT(r.outputs[0].flat<float>(), ElementsAre(0, 0.5f, -1, 32767.0f / 32768, -1, 0.25f));
  EXPECT_EQ(r.outputs[1].scalar<int32_t>(), 8000);
  EXPECT_THAT(RunOpOrDie("DecodeWav", {file}, {{"desired_channels", 3}, {"desired_samples", 1}})
                  .flat<float>(),
              ElementsAre(0, 0.5f, 0.5f));
}

/// Whatever bytes come: samples or an error.
TEST(WavTest, DamagedFilesEndWell) {
  const auto audio = Tensor::Of<float>({3, 2}, {0, 0.5f, -1, 2, -3, 0.25f});
  const std::string good(RunOpOrDie("EncodeWav", {audio, Tensor::Scalar(8000)}).scalar<TString>());
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const Status status = RunOp("DecodeWav", {Tensor::Scalar(bad)}).status;
      EXPECT_TRUE(status.ok() || status.code() == StatusCode::kInvalidArgument) << status;
    }
    EXPECT_FALSE(RunOp("DecodeWav", {Tensor::Scalar(good.substr(0, i))}).status.ok());
  }
  EXPECT_FALSE(RunOp("EncodeWav", {audio, Tensor::Scalar(0)}).status.ok());
}

TEST(SpectrogramTest, OfATone) {
  const auto wave = Tensor::Of<float>({5, 1}, {1, 0, -1, 0, 1});
  const AttributeMap attrs = {{"window_size", 4}, {"stride", 1}, {"magnitude_squared", true}};
  EXPECT_THAT(RunOpOrDie("AudioSpectrogram", {wave}, attrs).flat<float>(),
              Pointwise(FloatNear(1e-6f), {1.0f, 1.0f, 1.0f, 0.0f, 1.0f, 0.0f}));
  EXPECT_FALSE(RunOp("AudioSpectrogram", {wave}, {{"window_size", 1}, {"stride", 1}}).status.ok());
  EXPECT_FALSE(RunOp("AudioSpectrogram", {wave}, {{"window_size", 4}, {"stride", 0}}).status.ok());
}

TEST(MfccTest, IsTensorFlows) {
  Tensor powers(DType::kFloat, {1, 1, 17});
  for (int i = 0; i < 17; ++i) powers.data<float>()[i] = static_cast<float>(i) / 4;
  const AttributeMap attrs = {{"filterbank_channel_count", 5}, {"dct_coefficient_count", 3}};
  EXPECT_THAT(RunOpOrDie("Mfcc", {powers, Tensor::Scalar(8000)}, attrs).flat<float>(),
              Pointwise(FloatNear(1e-5f), {2.7299824f, -1.8360456f, -0.0895848f}));
  EXPECT_FALSE(RunOp("Mfcc", {powers, Tensor::Scalar(0)}, attrs).status.ok());
  EXPECT_FALSE(RunOp("Mfcc", {powers, Tensor::Scalar(8000)},
                     {{"filterbank_channel_count", 5}, {"dct_coefficient_count", 6}})
                   .status.ok());
}

}  // namespace
}  // namespace tenon::testing
