// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/arguments.h"
#include "ops/image/codecs.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// The attributes of decoders.
struct Reading : KernelState {
  explicit Reading(KernelConstruction& c) {
    op = c.op();
    how.channels = op == "DecodeGif" ? 3 : c.Attr<int64_t>("channels");
    if (c.attrs().Find("ratio")) {
      how.ratio = c.Attr<int64_t>("ratio");
      how.fancy_upscaling = c.Attr<bool>("fancy_upscaling");
      how.recover = c.Attr<bool>("try_recover_truncated");
      how.acceptable_fraction = c.Attr<float>("acceptable_fraction");
      const std::string method = c.Attr<std::string>("dct_method");
      how.accurate = method == "INTEGER_ACCURATE";
      if (!method.empty() && !how.accurate && method != "INTEGER_FAST") {
        c.Fail(InvalidArgument("dct_method is '", method,
                               "', wanted INTEGER_FAST or INTEGER_ACCURATE"));
      }
    }
    if (how.ratio != 1 && how.ratio != 2 && how.ratio != 4 && how.ratio != 8) {
      c.Fail(InvalidArgument("ratio must be 1, 2, 4, or 8, found ", how.ratio));
    }
    if (how.channels != 0 && how.channels != 1 && how.channels != 3 && how.channels != 4) {
      c.Fail(InvalidArgument("channels must be 0, 1, 3 or 4, found ", how.channels));
    }
    only_bmp = op == "DecodeBmp";
    bmp = op == "DecodeImage" || only_bmp;
    all_frames = op == "DecodeGif" || c.attrs().GetOr("expand_animations", false);
    one_frame = op == "DecodePng" || op == "DecodeJpeg";
  }
  std::string op;
  JpegReading how;
  bool bmp, only_bmp;
  bool all_frames;  // of a GIF file, whose frames are then the first dimension
  bool one_frame;   // there must not be more
};

std::string_view NameOf(ImageFormat format) {
  switch (format) {
    case ImageFormat::kPng:
      return "PNG";
    case ImageFormat::kJpeg:
      return "JPEG";
    case ImageFormat::kGif:
      return "GIF";
    case ImageFormat::kBmp:
      return "BMP";
    default:
      return "an unknown format";
  }
}

Status Decode(std::string_view file, const Reading& node, bool wide, const FrameMemory& memory) {
  const ImageFormat format = DetectFormat(file);
  const bool known = format != ImageFormat::kUnknown;
  if (node.only_bmp && known && format != ImageFormat::kBmp) {
    return InvalidArgument("Trying to decode ", NameOf(format),
                           " format using DecodeBmp op. Use `decode_image` instead.");
  }
  const PixelMemory one = [&](const ImageSize& size) { return memory(1, size); };
  switch (format) {
    case ImageFormat::kPng:
      return DecodePngFile(file, node.how.channels, wide, one);
    case ImageFormat::kJpeg:
      if (node.how.channels == 4)
        return InvalidArgument("channels must be 0, 1 or 3 for JPEG, found 4");
      return DecodeJpegFile(file, node.how, one);
    case ImageFormat::kBmp:
      if (node.bmp) return DecodeBmpFile(file, node.how.channels, one);
      return InvalidArgument(
          "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` "
          "instead. Op used: ",
          node.op);
    case ImageFormat::kGif:
      if (node.how.channels != 0 && node.how.channels != 3) {
        return InvalidArgument("channels must be 0 or 3 for GIF, but got ", node.how.channels);
      }
      return DecodeGifFile(file, !node.all_frames && !node.one_frame, memory);
    default:
      return InvalidArgument("Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
  }
}

/// The dimensions of what the op gives for such a file.
StatusOr<DimVector> OutputDims(const Reading& node, ImageFormat format, int64_t frames,
                               const ImageSize& size) {
  if (node.one_frame && frames > 1) {
    return InvalidArgument("Got ", frames,
                           " frames, but animated gifs can only be decoded by tf.io.decode_gif or "
                           "tf.io.decode_image");
  }
  DimVector dims = {size.height, size.width, size.channels};
  const bool has_frames =
      node.op == "DecodeGif" || (format == ImageFormat::kGif && node.all_frames);
  if (has_frames) dims.insert(dims.begin(), frames);
  return dims;
}

Status DecodeKernel(KernelContext& ctx, const Reading& node) {
  const std::string_view file = ctx.input(0).scalar<TString>();
  const DType type = ctx.output_type(0);
  const ImageFormat format = DetectFormat(file);
  const bool wide = format == ImageFormat::kPng && type != DType::kUInt8;
  Tensor pixels;
  const FrameMemory memory = [&](int64_t frames, const ImageSize& size) -> StatusOr<void*> {
    TENON_ASSIGN_OR_RETURN(const DimVector dims, OutputDims(node, format, frames, size));
    TENON_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TENON_ASSIGN_OR_RETURN(pixels, ctx.AllocateTemp(wide ? DType::kUInt16 : DType::kUInt8, shape));
    return pixels.raw_data();
  };
  TENON_RETURN_IF_ERROR(Decode(file, node, wide, memory));
  if (pixels.dtype() == type) return ctx.Return(std::move(pixels));
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, pixels.shape()));
  return DispatchStatus(pixels.dtype(), TypeList<uint8_t, uint16_t>(), [&]<typename T>(T) {
    for (int64_t i = 0; i < pixels.num_elements(); ++i) {
      const T v = pixels.data<T>()[i];
      if (type == DType::kUInt16) out->data<uint16_t>()[i] = static_cast<uint16_t>(v * 256);
      if (type == DType::kFloat) {
        out->data<float>()[i] = static_cast<float>(v) * (1.0f / std::numeric_limits<T>::max());
      }
    }
  });
}

Status DecodeAndCropKernel(KernelContext& ctx, const Reading& node) {
  TENON_ASSIGN_OR_RETURN(const DimVector window, ReadIntegerVector(ctx.input(1), "crop_window", 4));
  const ImageFormat format = DetectFormat(ctx.input(0).scalar<TString>());
  if (format != ImageFormat::kJpeg) {
    return InvalidArgument("DecodeAndCropJpeg operation can run on JPEG only, but detected ",
                           NameOf(format));
  }
  Tensor all;
  TENON_RETURN_IF_ERROR(DecodeJpegFile(
      ctx.input(0).scalar<TString>(), node.how, [&](const ImageSize& size) -> StatusOr<void*> {
        const int64_t y = window[0], x = window[1], height = window[2], width = window[3];
        if (y < 0 || x < 0 || height <= 0 || width <= 0 || height > size.height - y ||
            width > size.width - x) {
          return InvalidArgument("Invalid JPEG data or crop window: [", Join(window, ","),
                                 "] of an image of ", size.height, " x ", size.width, " pixels");
        }
        TENON_ASSIGN_OR_RETURN(const Shape shape,
                               Shape::Create({size.height, size.width, size.channels}));
        TENON_ASSIGN_OR_RETURN(all, ctx.AllocateTemp(DType::kUInt8, shape));
        return all.raw_data();
      }));
  const int64_t channels = all.dim(2);
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, {window[2], window[3], channels}));
  for (int64_t y = 0; y < window[2]; ++y) {
    const int64_t from = ((window[0] + y) * all.dim(1) + window[1]) * channels;
    std::copy_n(all.data<uint8_t>() + from, window[3] * channels,
                out->data<uint8_t>() + y * window[3] * channels);
  }
  return OkStatus();
}

Status ImageShape(ShapeContext& c) {
  TENON_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  TENON_ASSIGN_OR_RETURN(const int64_t channels, c.Attr<int64_t>("channels"));
  return c.Return(PartialShape{-1, -1, channels > 0 ? channels : -1});
}

Status JpegShapeKernel(KernelContext& ctx) {
  TENON_ASSIGN_OR_RETURN(const ImageSize size, JpegSize(ctx.input(0).scalar<TString>()));
  return ctx.Return(
      ShapeTensor(Shape({size.height, size.width, size.channels}), ctx.output_type(0)));
}

Status EncodePngKernel(KernelContext& ctx, const Tensor& in, int64_t compression) {
  if (compression < -1 || compression > 9) {
    return InvalidArgument("compression should be in [-1,9], got ", compression);
  }
  if (in.rank() < 3)
    return InvalidArgument("image must have rank 3 at least, found shape ", in.shape());
  const int n = in.rank();
  const ImageSize size{in.dim(n - 3), in.dim(n - 2), in.dim(n - 1)};
  if (size.elements() == 0 || size.channels > 4 || size.height > INT32_MAX ||
      size.width > INT32_MAX) {
    return InvalidArgument("image must have 1 to 4 channels and pixels, found shape ", in.shape());
  }
  const Shape batch(in.shape().dims().first(n - 3));
  const bool wide = in.dtype() == DType::kUInt16;
  TENON_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, batch));
  for (int64_t i = 0; i < batch.num_elements() && !Interrupted(); ++i) {
    const char* const pixels =
        static_cast<const char*>(in.raw_data()) + i * size.elements() * (wide ? 2 : 1);
    TENON_ASSIGN_OR_RETURN(const std::string file,
                           EncodePngFile(size, pixels, wide, static_cast<int>(compression)));
    out->data<TString>()[i] = TString(file);
  }
  return OkStatus();
}

/// The attributes of EncodeJpeg.
struct Writing : KernelState {
  explicit Writing(KernelConstruction& c)
      : how{.quality = static_cast<int>(c.Attr<int64_t>("quality")),
            .progressive = c.Attr<bool>("progressive"),
            .optimize = c.Attr<bool>("optimize_size"),
            .chroma_downsampling = c.Attr<bool>("chroma_downsampling"),
            .inches = c.Attr<std::string>("density_unit") == "in",
            .x_density = static_cast<int>(c.Attr<int64_t>("x_density")),
            .y_density = static_cast<int>(c.Attr<int64_t>("y_density")),
            .xmp = c.Attr<std::string>("xmp_metadata")},
        channels(c.Attr<std::string>("format").empty()    ? 0
                 : c.Attr<std::string>("format") == "rgb" ? 3
                                                          : 1) {
    const int64_t quality = c.Attr<int64_t>("quality");
    if (quality < 0 || quality > 100)
      c.Fail(InvalidArgument("quality must be in [0,100], got ", quality));
    if (how.xmp.size() > 60'000)
      c.Fail(InvalidArgument("xmp_metadata has ", how.xmp.size(), " bytes, at most 60000 fit"));
    if (!how.xmp.empty()) how.xmp = std::string("http://ns.adobe.com/xap/1.0/\0", 29) + how.xmp;
  }
  JpegWriting how;
  int64_t channels;
};

Status EncodeJpeg(KernelContext& ctx, const JpegWriting& how, int64_t channels) {
  const Tensor& in = ctx.input(0);
  if (in.rank() != 3 || in.dim(0) < 1 || in.dim(0) > 65500 || in.dim(1) < 1 || in.dim(1) > 65500 ||
      (in.dim(2) != 1 && in.dim(2) != 3) || (channels != 0 && in.dim(2) != channels)) {
    return InvalidArgument(
        "image must be [height, width, channels] of 1 (grayscale) or 3 (rgb) channels "
        "and sides of at most 65500, found shape ",
        in.shape());
  }
  return ctx.Return([&]() -> StatusOr<Tensor> {
    TENON_ASSIGN_OR_RETURN(std::string file, EncodeJpegFile({in.dim(0), in.dim(1), in.dim(2)},
                                                            in.data<uint8_t>(), how));
    return Tensor::Scalar(std::move(file));
  }());
}

Status EncodeJpegKernel(KernelContext& ctx, const Writing& node) {
  return EncodeJpeg(ctx, node.how, node.channels);
}

Status EncodeJpegQualityKernel(KernelContext& ctx, const Tensor&, Integer quality) {
  if (quality < 0 || quality > 100)
    return InvalidArgument("quality must be in [0,100], got ", quality.value);
  return EncodeJpeg(ctx, {.quality = static_cast<int>(quality)}, 0);
}

}  // namespace

void RegisterFileOps(OpRegistry& ops) {
  // 2 x 1 pixels of 24 bits: blue, then white.
  std::string bmp(
      "BM\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\2\0\0\0\1\0\0\0\1\0\x18\0\0\0\xff\0\0\xff\xff\xff\0\0",
      40);
  const char* const why = "takes an image file; image_files_test covers it";
  ops.Add("DecodePng", ImageShape, DecodeKernel).NoExample(why);
  ops.Add("DecodeJpeg", ImageShape, DecodeKernel).NoExample(why);
  ops.Add("DecodeBmp", ImageShape, DecodeKernel).Example({Tensor::Scalar(bmp)});
  // 2 x 1 pixels out of a table of two colours.
  const std::string gif("GIF89a\2\0\1\0\x80\0\0\xff\0\0\0\0\xff,\0\0\0\0\2\0\1\0\0\2\2\x44\x0a\0;",
                        35);
  ops.Add("DecodeGif", DecodeKernel).Example({Tensor::Scalar(gif)});
  ops.Add("DecodeImage", UnknownShape, DecodeKernel)
      .Example({Tensor::Scalar(bmp)}, {{"channels", 3}});
  ops.Add("DecodeAndCropJpeg", ImageShape, DecodeAndCropKernel).NoExample(why);
  ops.Add(
         "ExtractJpegShape", [](ShapeContext& c) { return c.Return(PartialShape{3}); },
         JpegShapeKernel)
      .NoExample(why);
  ops.Add("EncodePng", EncodePngKernel, {.attrs = {"compression"}})
      .InDomain(0, 255)
      .Example({Shape{2, 3, 2, 3}});
  ops.Add("EncodeJpeg", EncodeJpegKernel).InDomain(0, 255).Example({Shape{9, 4, 3}});
  ops.Add("EncodeJpegVariableQuality", EncodeJpegQualityKernel)
      .InDomain(0, 255)
      .Example({Shape{9, 4, 3}, Tensor::Scalar(80)});
}

}  // namespace tenon
