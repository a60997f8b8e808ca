// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

// WAV files of 16-bit PCM samples, which stand for [-1, 1).

namespace tenon {

/// A file of `frames` * `channels` samples, those of one time together. InvalidArgument when the
/// rate or the number of channels is 0 or too large for the format, or the file would be.
StatusOr<std::string> MakeWavFile(const float* samples, int64_t sample_rate, int64_t channels,
                                  int64_t frames);

/// What a file holds; `samples` are bytes of the file.
struct WavContents {
  int64_t sample_rate = 0, channels = 0, frames = 0;
  std::string_view samples;
  /// Sample `i` of frames * channels.
  float Sample(int64_t i) const;
};
/// InvalidArgument for anything but one chunk of 16-bit PCM samples, perhaps among others.
StatusOr<WavContents> ReadWavFile(std::string_view file);

}  // namespace tenon
