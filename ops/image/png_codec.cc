// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "core/memory/counted_memory.h"
#include "core/tensor/tstring.h"
#include "ops/image/codecs.h"

// libpng says that something is wrong by a jump back to where setjmp was called. It passes over
// destructors, so what has any lives outside the functions that call setjmp.

namespace tenon {
namespace {

constexpr int64_t kMostPngElements = int64_t{1} << 29;
/// Deflate cannot make more of a byte than this.
constexpr int64_t kMostDeflated = 1032;

/// What the callbacks see.
struct PngStream {
  std::string_view in;
  TString out;
  char error[200] = "";
};

void OnPngError(png_structp png, png_const_charp message) {
  auto* stream = static_cast<PngStream*>(png_get_error_ptr(png));
  std::snprintf(stream->error, sizeof(stream->error), "%s", message);
  png_longjmp(png, 1);
}
void OnPngWarning(png_structp, png_const_charp) {}

void ReadPngBytes(png_structp png, png_bytep to, png_size_t size) {
  auto* stream = static_cast<PngStream*>(png_get_io_ptr(png));
  if (size > stream->in.size()) png_error(png, "the file is cut short");
  std::memcpy(to, stream->in.data(), size);
  stream->in.remove_prefix(size);
}

void WritePngBytes(png_structp png, png_bytep from, png_size_t size) {
  auto* stream = static_cast<PngStream*>(png_get_io_ptr(png));
  bool full = false;
  try {
    stream->out.append(reinterpret_cast<const char*>(from), size);
  } catch (const std::bad_alloc&) {
    full = true;  // no exception may pass through libpng
  }
  if (full) png_error(png, "out of memory");
}

struct PngReader {
  PngStream stream;
  png_structp png = nullptr;
  png_infop info = nullptr;
  ImageSize size;
  bool widen = false;
  CountedVector<png_bytep> rows;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// Reads up to the pixels, and sets how they are changed.
bool ReadPngHead(PngReader& r, int64_t channels, bool wide) {
  if (setjmp(png_jmpbuf(r.png))) return false;
  png_set_read_fn(r.png, &r.stream, ReadPngBytes);
  png_set_chunk_malloc_max(r.png, 8 << 20);
  png_read_info(r.png, r.info);
  const int type = png_get_color_type(r.png, r.info), depth = png_get_bit_depth(r.png, r.info);
  const bool transparent = png_get_valid(r.png, r.info, PNG_INFO_tRNS) != 0;
  const bool palette = type == PNG_COLOR_TYPE_PALETTE, color = (type & PNG_COLOR_MASK_COLOR) != 0;
  if (channels == 0) {
    channels = palette ? (transparent ? 4 : 3) : png_get_channels(r.png, r.info);
  }
  r.size = {png_get_image_height(r.png, r.info), png_get_image_width(r.png, r.info), channels};
  if (palette) png_set_palette_to_rgb(r.png);
  if (!color && depth < 8) png_set_expand_gray_1_2_4_to_8(r.png);
  if (depth == 16 && !wide) png_set_strip_16(r.png);
  r.widen = depth < 16 && wide;
  if (channels % 2 == 1) {
    png_set_strip_alpha(r.png);
  } else if (transparent) {
    png_set_tRNS_to_alpha(r.png);
  } else if ((type & PNG_COLOR_MASK_ALPHA) == 0) {
    png_set_add_alpha(r.png, depth == 16 && wide ? 0xFFFF : 0xFF, PNG_FILLER_AFTER);
  }
  if (channels < 3 && color) png_set_rgb_to_gray(r.png, 1, 0.299, 0.587);
  if (channels >= 3 && !color) png_set_gray_to_rgb(r.png);
  if (depth == 16 && wide) png_set_swap(r.png);
  png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  return true;
}

bool ReadPngRows(PngReader& r) {
  if (setjmp(png_jmpbuf(r.png))) return false;
  png_read_image(r.png, r.rows.data());
  png_read_end(r.png, r.info);
  return true;
}

struct PngWriter {
  PngStream stream;
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

bool WritePng(PngWriter& w, const ImageSize& size, const void* pixels, bool wide, int compression) {
  static constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                   PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  if (setjmp(png_jmpbuf(w.png))) return false;
  png_set_write_fn(w.png, &w.stream, WritePngBytes, nullptr);
  png_set_compression_level(w.png, compression);
  png_set_IHDR(w.png, w.info, size.width, size.height, wide ? 16 : 8, kTypes[size.channels - 1],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(w.png, w.info);
  if (wide) png_set_swap(w.png);
  const auto* row = static_cast<const png_byte*>(pixels);
  for (int64_t y = 0; y < size.height; ++y, row += size.width * size.channels * (wide ? 2 : 1)) {
    png_write_row(w.png, row);
  }
  png_write_end(w.png, nullptr);
  return true;
}

}  // namespace

Status DecodePngFile(std::string_view file, int64_t channels, bool wide,
                     const PixelMemory& memory) {
  PngReader r;
  r.stream.in = file;
  r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r.stream, OnPngError, OnPngWarning);
  if (r.png != nullptr) r.info = png_create_info_struct(r.png);
  if (r.info == nullptr) return ResourceExhausted("no memory to decode a PNG image");
  if (!ReadPngHead(r, channels, wide))
    return InvalidArgument("Invalid PNG: ", std::string(r.stream.error));
  const ImageSize& size = r.size;
  const int64_t row_bytes = static_cast<int64_t>(png_get_rowbytes(r.png, r.info));
  if (size.elements() >= kMostPngElements ||
      size.height > static_cast<int64_t>(file.size()) * kMostDeflated * 8) {
    return InvalidArgument("a PNG image of ", size.height, " x ", size.width,
                           " pixels in a file of ", file.size(), " bytes is too large");
  }
  if (row_bytes != size.width * size.channels * (wide && !r.widen ? 2 : 1)) {
    return InvalidArgument("Invalid PNG: rows of ", row_bytes, " bytes");
  }
  TENON_ASSIGN_OR_RETURN(void* const to, memory(size));
  auto* bytes = static_cast<png_byte*>(to);
  std::memset(bytes, 0, size.elements() * (wide ? 2 : 1));
  for (int64_t y = 0; y < size.height; ++y) r.rows.push_back(bytes + y * row_bytes);
  if (!ReadPngRows(r)) return InvalidArgument("Invalid PNG: ", std::string(r.stream.error));
  // From the end on, since both share the memory.
  for (int64_t i = size.elements() - 1; r.widen && i >= 0; --i) {
    reinterpret_cast<uint16_t*>(bytes)[i] = static_cast<uint16_t>(bytes[i] * 257);
  }
  return OkStatus();
}

StatusOr<std::string> EncodePngFile(const ImageSize& size, const void* pixels, bool wide,
                                    int compression) {
  PngWriter w;
  w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w.stream, OnPngError, OnPngWarning);
  if (w.png != nullptr) w.info = png_create_info_struct(w.png);
  if (w.info == nullptr) return ResourceExhausted("no memory to encode a PNG image");
  if (!WritePng(w, size, pixels, wide, compression)) {
    return InvalidArgument("cannot write PNG: ", std::string(w.stream.error));
  }
  return std::string(w.stream.out);
}

}  // namespace tenon
