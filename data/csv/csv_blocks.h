// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "data/csv/csv.h"
#include "data/files/byte_stream.h"

namespace tenon {

/// A record of a CSV file, without the end of its last line.
struct CsvRecord {
  std::string_view text;
  int64_t line;  // the number of its first one, from 1 on
};

/// Cuts a CSV file into records, a block of bytes at a time. Used by one thread at a time.
class CsvBlocks {
 public:
  /// `name` is what messages call the file. `format` must outlive it.
  CsvBlocks(std::unique_ptr<ByteSource> bytes, std::string name, const CsvFormat& format)
      : bytes_(std::move(bytes)), name_(std::move(name)), format_(format) {}

  /// Gives the next records, at least one and at most `most`, which stay until the next call; none
  /// at the end. Empty lines are passed over. InvalidArgument for text in UTF-16, and for a record
  /// that is too long.
  Status Next(size_t most, std::vector<CsvRecord>* records);
  const std::string& name() const { return name_; }

 private:
  Status Read();
  Status CheckBeginning();
  bool TakeRecord(CsvRecord* record);

  const std::unique_ptr<ByteSource> bytes_;
  const std::string name_;
  const CsvFormat& format_;
  std::string buffer_;
  size_t begin_ = 0;      // of the next record
  size_t looked_at_ = 0;  // the end of its lines that were looked at, behind `begin_`
  int64_t line_ = 1;      // of the next record
  int64_t inner_ = 0;     // lines of it that were looked at
  bool within_quotes_ = false;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace tenon
