// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "data/files/byte_stream.h"
#include "data/files/file.h"

// Files of records in TensorFlow's format (TFRecord). A record is its length (8 bytes, little
// endian), the masked CRC-32C of those bytes, the data, and the masked CRC-32C of the data. The
// whole file may be compressed.

namespace tenon {

/// Reads records from front to back. Used by one thread at a time.
class RecordReader {
 public:
  /// Without `compression`, how the file begins decides.
  static StatusOr<std::unique_ptr<RecordReader>> Open(
      const std::string& path, std::optional<Compression> compression = std::nullopt,
      const FileContext& context = {});
  /// `name` is what messages call it.
  RecordReader(std::unique_ptr<ByteSource> source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}

  /// The next record; false at the end. DataLoss naming the offset when the file is damaged or
  /// ends inside a record; then nothing more can be read.
  StatusOr<bool> Read(std::string* record);
  /// Where the next record begins, in bytes of the decompressed file.
  int64_t offset() const { return offset_; }

 private:
  Status Damaged(std::string_view what) const;

  const std::unique_ptr<ByteSource> source_;
  const std::string name_;
  int64_t offset_ = 0;
};

/// Writes records. Used by one thread at a time.
class RecordWriter {
 public:
  static StatusOr<std::unique_ptr<RecordWriter>> Create(
      const std::string& path, Compression compression = Compression::kNone,
      WriteMode mode = WriteMode::kTruncate, const FileContext& context = {});
  explicit RecordWriter(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}

  Status Write(std::string_view record);
  /// Makes what was written visible to readers.
  Status Flush() { return file_->Flush(); }
  Status Close() { return file_->Close(); }

 private:
  const std::unique_ptr<OutputFile> file_;
};

}  // namespace tenon
