// SPDX-License-Identifier: Apache-2.0
#include <cstdio>  // jpeglib.h needs it

#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstring>

#include "core/base/interruption.h"
#include "core/memory/counted_memory.h"
#include "ops/image/codecs.h"

// libjpeg says that something is wrong by a call that must not return: it jumps back to where
// setjmp was called. That passes over destructors, so what has any lives outside the functions that
// call setjmp.

namespace tenon {
namespace {

constexpr int64_t kMostJpegElements = int64_t{1} << 29;

struct JpegErrors {
  jpeg_error_mgr manager;
  jmp_buf back;
  char text[JMSG_LENGTH_MAX] = "";
  bool cut_short = false;
};

JpegErrors& JpegErrorsOf(j_common_ptr info) { return *reinterpret_cast<JpegErrors*>(info->err); }

void OnJpegError(j_common_ptr info) {
  info->err->format_message(info, JpegErrorsOf(info).text);
  longjmp(JpegErrorsOf(info).back, 1);
}
void OnJpegMessage(j_common_ptr info, int level) {
  if (level < 0) ++info->err->num_warnings;
  if (info->err->msg_code == JWRN_JPEG_EOF) JpegErrorsOf(info).cut_short = true;
}
void InstallErrors(JpegErrors* errors) {
  jpeg_std_error(&errors->manager);
  errors->manager.error_exit = OnJpegError;
  errors->manager.emit_message = OnJpegMessage;
}

struct JpegReader {
  JpegErrors errors;
  jpeg_decompress_struct info = {};
  ImageSize size;
  bool inks = false;  // CMYK, which becomes RGB here
  CountedVector<uint8_t> line;
  int64_t lines = 0;
  JpegReader() {
    InstallErrors(&errors);
    info.err = &errors.manager;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info); }
};

bool ReadJpegHead(JpegReader& r, std::string_view file, const JpegReading& how) {
  if (setjmp(r.errors.back)) return false;
  jpeg_create_decompress(&r.info);
  r.info.mem->max_memory_to_use = 256 << 20;
  jpeg_mem_src(&r.info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&r.info, TRUE);
  const int64_t channels = how.channels != 0 ? how.channels : r.info.num_components == 1 ? 1 : 3;
  r.inks = r.info.jpeg_color_space == JCS_CMYK || r.info.jpeg_color_space == JCS_YCCK;
  r.info.out_color_space = channels == 1 && !r.inks ? JCS_GRAYSCALE : r.inks ? JCS_CMYK : JCS_RGB;
  r.info.scale_num = 1;
  r.info.scale_denom = static_cast<unsigned>(how.ratio);
  r.info.do_fancy_upsampling = how.fancy_upscaling;
  r.info.dct_method = how.accurate ? JDCT_ISLOW : JDCT_IFAST;
  jpeg_calc_output_dimensions(&r.info);
  r.size = {r.info.output_height, r.info.output_width, channels};
  return true;
}

/// Reads lines up to the end; false when an error comes before.
bool ReadJpegLines(JpegReader& r, uint8_t* to) {
  if (setjmp(r.errors.back)) return false;
  jpeg_start_decompress(&r.info);
  const int64_t row = r.size.width * r.size.channels;
  while (r.info.output_scanline < r.info.output_height && !Interrupted()) {
    JSAMPROW line = r.inks ? r.line.data() : to + r.lines * row;
    if (jpeg_read_scanlines(&r.info, &line, 1) != 1) return false;
    // Inks are stored inverted, as Adobe does: how much they let through.
    for (int64_t x = 0; r.inks && x < r.size.width; ++x) {
      const uint8_t* const ink = r.line.data() + 4 * x;
      uint8_t* const pixel = to + r.lines * row + x * r.size.channels;
      const int black = ink[3];
      for (int c = 0; c < r.size.channels; ++c) {
        pixel[c] = static_cast<uint8_t>(
            r.info.saw_Adobe_marker ? black * ink[c] / 255 : (255 - black) * (255 - ink[c]) / 255);
      }
    }
    ++r.lines;
    if (r.errors.cut_short) break;
  }
  return true;
}

struct JpegWriter {
  JpegErrors errors;
  jpeg_compress_struct info = {};
  unsigned char* bytes = nullptr;
  unsigned long count = 0;  // NOLINT: libjpeg's type
  JpegWriter() {
    InstallErrors(&errors);
    info.err = &errors.manager;
  }
  ~JpegWriter() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }
};

bool WriteJpeg(JpegWriter& w, const ImageSize& size, const uint8_t* pixels,
               const JpegWriting& how) {
  if (setjmp(w.errors.back)) return false;
  jpeg_create_compress(&w.info);
  jpeg_mem_dest(&w.info, &w.bytes, &w.count);
  w.info.image_width = static_cast<JDIMENSION>(size.width);
  w.info.image_height = static_cast<JDIMENSION>(size.height);
  w.info.input_components = static_cast<int>(size.channels);
  w.info.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&w.info);
  if (how.gray) jpeg_set_colorspace(&w.info, JCS_GRAYSCALE);
  if (how.optimize) w.info.optimize_coding = TRUE;
  w.info.density_unit = how.inches ? 1 : 2;
  w.info.X_density = static_cast<UINT16>(how.x_density);
  w.info.Y_density = static_cast<UINT16>(how.y_density);
  jpeg_set_quality(&w.info, how.quality, TRUE);
  if (how.progressive) jpeg_simple_progression(&w.info);
  if (!how.chroma_downsampling) {
    for (int i = 0; i < w.info.num_components; ++i) {
      w.info.comp_info[i].h_samp_factor = w.info.comp_info[i].v_samp_factor = 1;
    }
  }
  jpeg_start_compress(&w.info, TRUE);
  if (!how.xmp.empty()) {
    jpeg_write_marker(&w.info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(how.xmp.data()),
                      static_cast<unsigned>(how.xmp.size()));
  }
  for (int64_t y = 0; y < size.height; ++y) {
    auto* line = const_cast<JSAMPROW>(pixels + y * size.width * size.channels);
    jpeg_write_scanlines(&w.info, &line, 1);
  }
  jpeg_finish_compress(&w.info);
  return true;
}

}  // namespace

Status DecodeJpegFile(std::string_view file, const JpegReading& how, const PixelMemory& memory) {
  JpegReader r;
  if (!ReadJpegHead(r, file, how))
    return InvalidArgument("Invalid JPEG: ", std::string(r.errors.text));
  if (r.size.elements() >= kMostJpegElements) {
    return InvalidArgument("a JPEG image of ", r.size.height, " x ", r.size.width,
                           " pixels is too large");
  }
  TENON_ASSIGN_OR_RETURN(void* const to, memory(r.size));
  std::memset(to, 0, r.size.elements());
  if (r.inks) r.line.resize(r.size.width * 4);
  const bool read = ReadJpegLines(r, static_cast<uint8_t*>(to));
  if (!read || r.errors.cut_short) {
    const bool enough =
        static_cast<float>(r.lines) >= how.acceptable_fraction * static_cast<float>(r.size.height);
    if (!how.recover || !enough) {
      return InvalidArgument("Invalid JPEG: ",
                             r.errors.cut_short ? "it is cut short" : std::string(r.errors.text));
    }
  }
  return OkStatus();
}

StatusOr<ImageSize> JpegSize(std::string_view file) {
  JpegReader r;
  if (!ReadJpegHead(r, file, {}))
    return InvalidArgument("Invalid JPEG: ", std::string(r.errors.text));
  return ImageSize{r.info.image_height, r.info.image_width, r.info.num_components};
}

StatusOr<std::string> EncodeJpegFile(const ImageSize& size, const uint8_t* pixels,
                                     const JpegWriting& how) {
  JpegWriter w;
  if (!WriteJpeg(w, size, pixels, how)) {
    return InvalidArgument("cannot write JPEG: ", std::string(w.errors.text));
  }
  return std::string(reinterpret_cast<const char*>(w.bytes), w.count);
}

}  // namespace tenon
