// SPDX-License-Identifier: Apache-2.0
#include "ops/audio/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/memory/counted_memory.h"

namespace tenon {
namespace {

static_assert(std::endian::native == std::endian::little);

template <typename T>
void AppendNumber(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// The rest of a file.
class WavReader {
 public:
  explicit WavReader(std::string_view file) : rest_(file) {}

  bool done() const { return rest_.empty(); }
  StatusOr<std::string_view> Take(size_t bytes) {
    if (bytes > rest_.size()) {
      return InvalidArgument("a WAV file ends within ", bytes, " bytes, of which there are ",
                             rest_.size());
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  template <typename T>
  Status Read(T* value) {
    TENON_ASSIGN_OR_RETURN(const std::string_view bytes, Take(sizeof(T)));
    std::memcpy(value, bytes.data(), sizeof(T));
    return OkStatus();
  }
  Status Expect(std::string_view text) {
    TENON_ASSIGN_OR_RETURN(const std::string_view found, Take(text.size()));
    if (found == text) return OkStatus();
    return InvalidArgument("no WAV file: expected ", text, ", found ", found);
  }

 private:
  std::string_view rest_;
};

/// The chunk that tells how samples are stored.
Status ReadFormat(WavReader& in, WavContents* wav) {
  uint32_t size, rate, bytes_per_second;
  uint16_t encoding, channels, bytes_per_frame, bits;
  TENON_RETURN_IF_ERROR(in.Read(&size));
  TENON_RETURN_IF_ERROR(in.Read(&encoding));
  TENON_RETURN_IF_ERROR(in.Read(&channels));
  TENON_RETURN_IF_ERROR(in.Read(&rate));
  TENON_RETURN_IF_ERROR(in.Read(&bytes_per_second));
  TENON_RETURN_IF_ERROR(in.Read(&bytes_per_frame));
  TENON_RETURN_IF_ERROR(in.Read(&bits));
  if ((size != 16 && size != 18) || encoding != 1 || bits != 16) {
    return InvalidArgument("a WAV file must be 16-bit PCM, found encoding ", encoding, " of ", bits,
                           " bits in a format chunk of ", size, " bytes");
  }
  if (channels == 0 || bytes_per_frame != 2 * channels ||
      bytes_per_second != bytes_per_frame * rate) {
    return InvalidArgument("a WAV file contradicts itself: ", channels, " channels, ",
                           bytes_per_frame, " bytes for each time, ", rate, " times and ",
                           bytes_per_second, " bytes a second");
  }
  wav->sample_rate = rate;
  wav->channels = channels;
  return size == 18 ? in.Take(2).status() : OkStatus();
}

}  // namespace

StatusOr<std::string> MakeWavFile(const float* samples, int64_t sample_rate, int64_t channels,
                                  int64_t frames) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  constexpr int64_t kHeader = 44;
  if (sample_rate < 1 || sample_rate > kMost) {
    return InvalidArgument("sample_rate must be in (0, 2^32), found ", sample_rate);
  }
  if (channels < 1 || channels > std::numeric_limits<uint16_t>::max()) {
    return InvalidArgument("the number of channels must be in (0, 2^16), found ", channels);
  }
  if (frames > (kMost - kHeader) / 2 / channels) {
    return InvalidArgument("a WAV file cannot hold ", frames, " samples of ", channels,
                           " channels");
  }
  const int64_t bytes = 2 * frames * channels;
  std::string file = "RIFF";
  file.reserve(kHeader + bytes);
  AppendNumber(static_cast<uint32_t>(kHeader + bytes - 8), &file);
  file += "WAVEfmt ";
  AppendNumber(uint32_t{16}, &file);
  AppendNumber(uint16_t{1}, &file);
  AppendNumber(static_cast<uint16_t>(channels), &file);
  AppendNumber(static_cast<uint32_t>(sample_rate), &file);
  AppendNumber(static_cast<uint32_t>(sample_rate * 2 * channels), &file);
  AppendNumber(static_cast<uint16_t>(2 * channels), &file);
  AppendNumber(uint16_t{16}, &file);
  file += "data";
  AppendNumber(static_cast<uint32_t>(bytes), &file);
  for (int64_t i = 0; i < frames * channels; ++i) {
    const float v = std::round(samples[i] * 32768);
    // No number is the least one.
    AppendNumber(static_cast<int16_t>(v > -32768 ? std::min(v, 32767.0f) : -32768.0f), &file);
  }
  return file;
}

float WavContents::Sample(int64_t i) const {
  int16_t value;
  std::memcpy(&value, samples.data() + 2 * i, sizeof(value));
  return static_cast<float>(value) * (1.0f / 32768);
}

StatusOr<WavContents> ReadWavFile(std::string_view file) {
  WavReader in(file);
  uint32_t size;
  TENON_RETURN_IF_ERROR(in.Expect("RIFF"));
  TENON_RETURN_IF_ERROR(in.Read(&size));
  TENON_RETURN_IF_ERROR(in.Expect("WAVE"));
  TENON_ASSIGN_OR_RETURN(std::string_view chunk, in.Take(4));
  while (chunk != "fmt ") {
    constexpr std::string_view kPassedOver[] = {"JUNK", "bext", "iXML", "qlty",
                                                "mext", "levl", "link", "axml"};
    if (std::find(std::begin(kPassedOver), std::end(kPassedOver), chunk) == std::end(kPassedOver)) {
      return InvalidArgument("unexpected chunk '", chunk, "' in a WAV file");
    }
    TENON_RETURN_IF_ERROR(in.Read(&size));
    TENON_RETURN_IF_ERROR(in.Take(size).status());
    TENON_ASSIGN_OR_RETURN(chunk, in.Take(4));
  }
  WavContents wav;
  TENON_RETURN_IF_ERROR(ReadFormat(in, &wav));
  bool found = false;
  while (!in.done()) {
    TENON_ASSIGN_OR_RETURN(chunk, in.Take(4));
    TENON_RETURN_IF_ERROR(in.Read(&size));
    if (chunk == "data" && found) return InvalidArgument("a WAV file has two data chunks");
    if (chunk == "data") size = size / (2 * wav.channels) * (2 * wav.channels);
    TENON_ASSIGN_OR_RETURN(const std::string_view bytes, in.Take(size));
    if (chunk != "data") continue;
    found = true;
    wav.samples = bytes;
    wav.frames = size / (2 * wav.channels);
  }
  if (!found) return InvalidArgument("no data chunk found in a WAV file");
  return wav;
}

}  // namespace tenon
