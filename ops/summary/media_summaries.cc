// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/base/interruption.h"
#include "core/op/op_registry.h"
#include "core/proto/proto_io_tensor.h"
#include "ops/arguments.h"
#include "ops/audio/wav.h"
#include "ops/image/codecs.h"
#include "ops/maths.h"
#include "ops/summary/summary_values.h"
#include "proto/summary.pb.h"

namespace tenon {
namespace {

/// Adds values of the tag "tag/kind/0" and so on, or "tag/kind" where there can be but one; `fill`
/// makes value i.
template <typename Fill>
Status Summarize(std::string_view tag, std::string_view kind, int64_t count, int64_t most,
                 Summary* summary, Fill fill) {
  for (int64_t i = 0; i < std::min(count, most) && !Interrupted(); ++i) {
    Summary::Value* const value = summary->add_value();
    value->set_tag(StrCat(tag, "/", kind, most > 1 ? StrCat("/", i) : ""));
    TENON_RETURN_IF_ERROR(fill(i, value));
  }
  return OkStatus();
}

/// Pixels as bytes: the largest becomes 255 and 0 stays; where some are negative 0 becomes 128, and
/// what is furthest from it 127 away from that.
template <typename T>
void ToBytes(const T* from, int64_t pixels, int64_t channels, const uint8_t* bad, uint8_t* to) {
  const auto finite = [&](int64_t i) {
    return std::all_of(from + i * channels, from + (i + 1) * channels,
                       [](T v) { return std::isfinite(static_cast<double>(v)); });
  };
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t k = i * channels; finite(i) && k < (i + 1) * channels; ++k) {
      low = std::min(low, static_cast<float>(from[k]));
      high = std::max(high, static_cast<float>(from[k]));
    }
  }
  const float range = low < 0 ? std::max(-low, high) : high, span = low < 0 ? 127 : 255;
  const auto scale = static_cast<T>(range < 1e-6f ? 0.0f : span / range);
  const auto offset = static_cast<T>(low < 0 ? 128.0f : 0.0f);
  for (int64_t i = 0; i < pixels; ++i) {
    const bool good = finite(i);
    for (int64_t c = 0; c < channels; ++c) {
      const auto scaled = static_cast<T>(from[i * channels + c] * scale);
      const auto shifted = static_cast<double>(static_cast<T>(scaled + offset));
      *to++ = good ? static_cast<uint8_t>(std::clamp(shifted, 0.0, 255.0)) : bad[c];
    }
  }
}

/// The color of pixels without a value.
struct BadColor : KernelState {
  explicit BadColor(KernelConstruction& c) : value(c.Attr<Tensor>("bad_color")) {
    c.Fail(CheckColor(value));
  }
  static Status CheckColor(const Tensor& color) {
    if (color.dtype() == DType::kUInt8 && color.rank() == 1) return OkStatus();
    return InvalidArgument("bad_color must be a vector of uint8, found ", color.dtype(),
                           " of shape ", color.shape());
  }
  const Tensor value;
};

Status ImageSummaryKernel(KernelContext& ctx, const BadColor& bad, int64_t max_images) {
  Summary summary;
  TENON_RETURN_IF_ERROR(
      AddImages(ctx.input(0).scalar<TString>(), ctx.input(1), bad.value, max_images, &summary));
  return ctx.Return(Tensor::Scalar(summary.SerializeAsString()));
}

Status AudioSummary(KernelContext& ctx, int64_t max_outputs, float rate) {
  Summary summary;
  TENON_RETURN_IF_ERROR(
      AddSounds(ctx.input(0).scalar<TString>(), ctx.input(1), rate, max_outputs, &summary));
  return ctx.Return(Tensor::Scalar(summary.SerializeAsString()));
}

Status AudioSummaryKernel(KernelContext& ctx, int64_t max_outputs, float rate) {
  return AudioSummary(ctx, max_outputs, rate);
}

Status AudioSummaryV2Kernel(KernelContext& ctx, int64_t max_outputs) {
  if (ctx.input(2).num_elements() != 1) {
    return InvalidArgument("sample_rate must be a scalar, found shape ", ctx.input(2).shape());
  }
  return AudioSummary(ctx, max_outputs, ctx.input(2).scalar<float>());
}

Status SetTensor(const Tensor& t, Summary::Value* value) {
  return TensorToProto(
      t, value->mutable_tensor(),
      t.dtype() == DType::kString ? TensorEncoding::kTyped : TensorEncoding::kContent);
}

Status TensorSummaryKernel(KernelContext& ctx, const NodeName& node) {
  Summary summary;
  summary.add_value()->set_node_name(node.value);
  TENON_RETURN_IF_ERROR(SetTensor(ctx.input(0), summary.mutable_value(0)));
  return ctx.Return(Tensor::Scalar(summary.SerializeAsString()));
}

Status TensorSummaryV2Kernel(KernelContext& ctx) {
  const Tensor &tag = ctx.input(0), &metadata = ctx.input(2);
  TENON_RETURN_IF_ERROR(CheckRank(tag, 0, "tag"));
  TENON_RETURN_IF_ERROR(CheckRank(metadata, 0, "serialized_summary_metadata"));
  Summary summary;
  TENON_RETURN_IF_ERROR(
      AddTensor(tag.scalar<TString>(), ctx.input(1), metadata.scalar<TString>(), &summary));
  return ctx.Return(Tensor::Scalar(summary.SerializeAsString()));
}

}  // namespace

Status AddImages(std::string_view tag, const Tensor& images, const Tensor& bad_color, int64_t most,
                 Summary* summary) {
  TENON_RETURN_IF_ERROR(BadColor::CheckColor(bad_color));
  const int64_t channels = images.rank() == 4 ? images.dim(3) : 0;
  if ((channels != 1 && channels != 3 && channels != 4) || images.dim(1) == 0 ||
      images.dim(2) == 0 || images.dim(1) * images.dim(2) > INT32_MAX) {
    return InvalidArgument(
        "tensor must be [batch, height, width, channels] with pixels, less than 2^31 each, of 1, 3 "
        "or 4 channels, found shape ",
        images.shape());
  }
  if (images.dtype() != DType::kUInt8 && channels > bad_color.num_elements()) {
    return InvalidArgument("bad_color has ", bad_color.num_elements(), " elements, wanted ",
                           channels);
  }
  const int64_t height = images.dim(1), width = images.dim(2), size = height * width * channels;
  return Summarize(
      tag, "image", images.dim(0), most, summary, [&](int64_t i, Summary::Value* value) -> Status {
        CountedVector<uint8_t> bytes(size);
        Dispatch(images.dtype(), TypeList<float, double, Half>(), [&]<typename T>(T) {
          ToBytes(images.data<T>() + i * size, height * width, channels, bad_color.data<uint8_t>(),
                  bytes.data());
        });
        if (images.dtype() == DType::kUInt8) {
          std::copy_n(images.data<uint8_t>() + i * size, size, bytes.begin());
        }
        Summary::Image* const image = value->mutable_image();
        image->set_height(static_cast<int32_t>(height));
        image->set_width(static_cast<int32_t>(width));
        image->set_colorspace(static_cast<int32_t>(channels));
        TENON_ASSIGN_OR_RETURN(*image->mutable_encoded_image_string(),
                               EncodePngFile({height, width, channels}, bytes.data(), false, -1));
        return OkStatus();
      });
}

Status AddSounds(std::string_view tag, const Tensor& sounds, float rate, int64_t most,
                 Summary* summary) {
  if (sounds.rank() != 2 && sounds.rank() != 3) {
    return InvalidArgument(
        "tensor must be [batch, frames] or [batch, frames, channels], found shape ",
        sounds.shape());
  }
  if (!(rate > 0)) return InvalidArgument("sample_rate must be positive, found ", rate);
  const int64_t frames = sounds.dim(1), channels = sounds.rank() == 2 ? 1 : sounds.dim(2);
  return Summarize(
      tag, "audio", sounds.dim(0), most, summary, [&](int64_t i, Summary::Value* value) -> Status {
        Summary::Audio* const audio = value->mutable_audio();
        audio->set_sample_rate(rate);
        audio->set_num_channels(channels);
        audio->set_length_frames(frames);
        audio->set_content_type("audio/wav");
        const auto whole = static_cast<int64_t>(std::rint(std::clamp(rate, 1.0f, 1e10f)));
        TENON_ASSIGN_OR_RETURN(
            *audio->mutable_encoded_audio_string(),
            MakeWavFile(sounds.data<float>() + i * frames * channels, whole, channels, frames));
        return OkStatus();
      });
}

Status AddTensor(std::string_view tag, const Tensor& tensor, std::string_view metadata,
                 Summary* summary) {
  Summary::Value* const value = summary->add_value();
  value->set_tag(std::string(tag));
  if (metadata.size() > INT32_MAX || !value->mutable_metadata()->ParseFromArray(
                                         metadata.data(), static_cast<int>(metadata.size()))) {
    return InvalidArgument("summary_metadata is no SummaryMetadata message");
  }
  return SetTensor(tensor, value);
}

void RegisterMediaSummaries(OpRegistry& ops) {
  const Tensor tag = Tensor::Scalar("seen");
  ops.Add("ImageSummary", ScalarShape, ImageSummaryKernel, {.attrs = {"max_images"}})
      .Example({tag, Shape{2, 3, 4, 3}})
      .Example({tag, Shape{1, 3, 4, 1}}, {{"T", DType::kUInt8}});
  ops.Add("AudioSummary", ScalarShape, AudioSummaryKernel,
          {.attrs = {"max_outputs", "sample_rate"}})
      .Example({tag, Shape{2, 5}}, {{"sample_rate", 8000.0f}});
  ops.Add("AudioSummaryV2", ScalarShape, AudioSummaryV2Kernel, {.attrs = {"max_outputs"}})
      .Example({tag, Shape{2, 5, 2}, Tensor::Scalar(8000.0f)});
  ops.Add("TensorSummary", ScalarShape, TensorSummaryKernel).Example({Shape{2, 3}});
  ops.Add("TensorSummaryV2", ScalarShape, TensorSummaryV2Kernel)
      .Example({tag, Shape{2, 3}, Tensor::Scalar("")});
}

}  // namespace tenon
