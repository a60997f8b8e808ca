// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/shape.h"

// Image files to pixels and back. Files come from outside: sizes are checked before memory is
// taken, and whatever is wrong is InvalidArgument.

namespace tenon {

enum class ImageFormat { kUnknown, kPng, kJpeg, kGif, kBmp };
ImageFormat DetectFormat(std::string_view file);

/// [height, width, channels].
struct ImageSize {
  int64_t height = 0, width = 0, channels = 0;
  int64_t elements() const { return height * width * channels; }
};

/// Takes the size of an image and gives memory for its elements, row by row.
using PixelMemory = std::function<StatusOr<void*>(const ImageSize&)>;

/// Decodes a PNG file to uint8, or uint16 if `wide`. `channels` are 1 to 4, or 0 as in the file.
Status DecodePngFile(std::string_view file, int64_t channels, bool wide, const PixelMemory& memory);

struct JpegReading {
  int64_t channels = 0;  // 0: as in the file; 1; 3
  int64_t ratio = 1;     // 1, 2, 4 or 8
  bool fancy_upscaling = true;
  bool recover = false;
  float acceptable_fraction = 1;
  bool accurate = false;
};
Status DecodeJpegFile(std::string_view file, const JpegReading& how, const PixelMemory& memory);
/// The size without decoding.
StatusOr<ImageSize> JpegSize(std::string_view file);

/// `channels` are 1, 3 or 4, or 0 as in the file.
Status DecodeBmpFile(std::string_view file, int64_t channels, const PixelMemory& memory);

/// Takes the number of frames and the size of each, and gives memory for all of them.
using FrameMemory = std::function<StatusOr<void*>(int64_t frames, const ImageSize&)>;

/// Decodes all frames of a GIF file, or the first one, to uint8 of 3 channels. They have the size
/// of the largest, and show what the ones before have left.
Status DecodeGifFile(std::string_view file, bool first_only, const FrameMemory& memory);

/// A PNG file of pixels, of uint8 or of uint16 if `wide`; `compression` is -1 to 9.
StatusOr<std::string> EncodePngFile(const ImageSize& size, const void* pixels, bool wide,
                                    int compression);

struct JpegWriting {
  bool gray = false;
  int quality = 95;
  bool progressive = false, optimize = false, chroma_downsampling = true, inches = true;
  int x_density = 300, y_density = 300;
  std::string xmp = {};
};
/// A JPEG file of 1 or 3 channels of uint8.
StatusOr<std::string> EncodeJpegFile(const ImageSize& size, const uint8_t* pixels,
                                     const JpegWriting& how);

}  // namespace tenon
