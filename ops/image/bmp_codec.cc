// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "core/base/interruption.h"
#include "ops/image/codecs.h"

namespace tenon {
namespace {

uint32_t Number(std::string_view file, size_t at, int bytes) {
  uint32_t number = 0;
  for (int i = bytes - 1; i >= 0; --i)
    number = number << 8 | static_cast<unsigned char>(file[at + i]);
  return number;
}

}  // namespace

ImageFormat DetectFormat(std::string_view file) {
  if (file.starts_with("\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (file.starts_with("\211PNG\r\n\032\n")) return ImageFormat::kPng;
  if (file.starts_with("GIF8")) return ImageFormat::kGif;
  if (file.starts_with("BM")) return ImageFormat::kBmp;
  return ImageFormat::kUnknown;
}

Status DecodeBmpFile(std::string_view file, int64_t channels, const PixelMemory& memory) {
  constexpr size_t kHead = 32;
  if (file.size() < kHead) {
    return InvalidArgument("Incomplete bmp content, requires at least ", kHead, " bytes, found ",
                           file.size());
  }
  const int64_t start = Number(file, 10, 4), width = static_cast<int32_t>(Number(file, 18, 4));
  const int64_t signed_height = static_cast<int32_t>(Number(file, 22, 4));
  const int64_t height = std::abs(signed_height), stored = Number(file, 28, 2) / 8;
  if (channels != 0 && channels != 3 && channels != 4) {
    return InvalidArgument("`channels` must be 0, 3 or 4 for BMP, but got ", channels);
  }
  if (channels == 0) channels = stored;
  if (width <= 0 || height == 0 || (stored != 1 && stored != 3 && stored != 4)) {
    return InvalidArgument("a bmp image of ", height, " x ", width, " pixels and ", stored,
                           " channels, wanted positive sizes and 1, 3 or 4 channels");
  }
  // Both factors have at most 32 bits, and channels are few.
  const int64_t row = (width * stored + 3) / 4 * 4;
  const int64_t have = static_cast<int64_t>(file.size()) - start;
  if (have < 0 || have / row < height - 1 || have - row * (height - 1) < width * stored) {
    return InvalidArgument("Incomplete bmp content of ", file.size(), " bytes for ", height, " x ",
                           width, " pixels");
  }
  TENON_ASSIGN_OR_RETURN(void* const memory_of_pixels, memory({height, width, channels}));
  auto* to = static_cast<uint8_t*>(memory_of_pixels);
  for (int64_t y = 0; y < height && !Interrupted(); ++y) {
    // The first row is the lowest, unless the height is negative.
    const int64_t from = start + row * (signed_height > 0 ? height - 1 - y : y);
    const char* pixel = file.data() + from;
    for (int64_t x = 0; x < width; ++x, pixel += stored, to += channels) {
      // Blue comes first.
      for (int64_t c = 0; c < std::min<int64_t>(channels, 3); ++c) {
        to[c] = static_cast<uint8_t>(pixel[stored == 1 ? 0 : 2 - c]);
      }
      if (channels == 4) to[3] = stored == 4 ? static_cast<uint8_t>(pixel[3]) : 255;
    }
  }
  return OkStatus();
}

}  // namespace tenon
