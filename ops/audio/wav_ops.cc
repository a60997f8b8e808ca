// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/audio/wav.h"

namespace tenon {
namespace {

Status DecodeWavKernel(KernelContext& ctx, int64_t channels, int64_t samples) {
  const std::string_view file = ctx.input(0).scalar<TString>();
  if (file.size() > INT32_MAX) {
    return InvalidArgument("contents have ", file.size(), " bytes, wanted less than 2^31");
  }
  TENON_ASSIGN_OR_RETURN(const WavContents wav, ReadWavFile(file));
  if (channels == -1) channels = wav.channels;
  if (samples == -1) samples = wav.frames;
  TENON_ASSIGN_OR_RETURN(Tensor * audio, ctx.CreateOutput(0, {samples, channels}));
  float* to = audio->data<float>();
  for (int64_t i = 0; i < samples; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      // Channels that the file lacks are as its last.
      const int64_t from = i * wav.channels + std::min(c, wav.channels - 1);
      *to++ = i < wav.frames ? wav.Sample(from) : 0;
    }
  }
  ctx.set_output(1, Tensor::Scalar(static_cast<int32_t>(wav.sample_rate)));
  return OkStatus();
}

Status EncodeWavKernel(KernelContext& ctx, const Tensor& audio) {
  TENON_RETURN_IF_ERROR(CheckRank(audio, 2, "audio"));
  const int64_t rate = ctx.input(1).scalar<int32_t>();
  TENON_ASSIGN_OR_RETURN(std::string file,
                         MakeWavFile(audio.data<float>(), rate, audio.dim(1), audio.dim(0)));
  return ctx.Return(Tensor::Scalar(std::move(file)));
}

Status DecodeWavShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  TENON_ASSIGN_OR_RETURN(const int64_t channels, c.Attr<int64_t>("desired_channels"));
  TENON_ASSIGN_OR_RETURN(const int64_t samples, c.Attr<int64_t>("desired_samples"));
  if (channels < -1 || samples < -1) {
    return InvalidArgument("desired_channels and desired_samples must be at least -1, found ",
                           channels, " and ", samples);
  }
  c.set_output(0, {samples, channels});
  c.set_output(1, Shape());
  return OkStatus();
}

}  // namespace

void RegisterWavOps(OpRegistry& ops) {
  const float samples[] = {0.5f, -0.25f, 1, 0};
  ops.Add("DecodeWav", DecodeWavShape, DecodeWavKernel,
          {.attrs = {"desired_channels", "desired_samples"}})
      .Example({Tensor::Scalar(MakeWavFile(samples, 8000, 2, 2).value())});
  ops.Add("EncodeWav", EncodeWavKernel).Example({Shape{5, 2}, Tensor::Scalar(8000)});
}

}  // namespace tenon
