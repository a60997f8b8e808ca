// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/files/byte_stream.h"

// The records of files, as readers and datasets take them.

namespace tenon {

/// The records of one file, from front to back.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// The next record, and what names it; false at the end.
  virtual StatusOr<bool> Next(std::string* key, std::string* value) = 0;
};

/// Lines without their ends, LF or CR LF, behind the first `skip`.
std::unique_ptr<RecordSource> MakeLineSource(std::string file, std::unique_ptr<ByteSource> bytes,
                                             int64_t skip);
/// DataLoss where the file is damaged.
std::unique_ptr<RecordSource> MakeTFRecordSource(std::string file,
                                                 std::unique_ptr<ByteSource> bytes);

/// In bytes. From the beginning of a record to the next one's are `hop`; 0: as long as a record.
struct FixedLengths {
  int64_t header = 0, record = 0, footer = 0, hop = 0;
  friend bool operator==(const FixedLengths&, const FixedLengths&) = default;
};
/// Records of one length, cut out of `content`: where the footer begins is only known at the end of
/// a compressed file.
std::unique_ptr<RecordSource> MakeFixedLengthSource(std::string file, std::string content,
                                                    const FixedLengths& lengths);
/// One record.
std::unique_ptr<RecordSource> MakeOneRecordSource(std::string key, std::string value);

/// Everything that is left. Cancelled when the kernel is interrupted meanwhile.
StatusOr<std::string> ReadToEnd(ByteSource& bytes);

}  // namespace tenon
