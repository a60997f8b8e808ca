// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "data/batch/batch_stages.h"
#include "data/files/byte_stream.h"

namespace tenon {

/// Reads lines from front to back, without their ends, LF or CR LF. Used by one thread at a time.
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> bytes) : bytes_(std::move(bytes)) {}
  /// The next line, which stays until the next call; false at the end. The errors of the source.
  StatusOr<bool> Next(std::string_view* line);

 private:
  const std::unique_ptr<ByteSource> bytes_;
  std::string buffer_;
  size_t begin_ = 0;  // of the next line
  bool ended_ = false;
};

/// The lines of files, one file after the other, as rows of one column of text, "line". Files are
/// plain or gzipped. Errors name the file.
BatchSourcePtr ReadLines(std::vector<std::string> paths, const FileContext& context = {});

}  // namespace tenon
