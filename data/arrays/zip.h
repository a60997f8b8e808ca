// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

// The part of the ZIP format that NumPy's .npz files use: members stored or deflated, also with the
// 64-bit sizes of ZIP64 when reading.

namespace tenon {

/// The members of an archive in memory. Checks every offset and size: DataLoss for an archive that
/// is damaged. Thread-safe once open.
class ZipReader {
 public:
  struct Member {
    std::string name;
    int method;  // 0 stored, 8 deflated
    uint32_t crc32;
    uint64_t compressed_size;
    uint64_t size;
    uint64_t header_offset;
  };

  static StatusOr<ZipReader> Open(std::string content);
  const std::vector<Member>& members() const { return members_; }
  /// Null when there is none.
  const Member* Find(std::string_view name) const;
  /// The content of a member; DataLoss when size or checksum are wrong.
  StatusOr<std::string> Read(const Member& member) const;

 private:
  ZipReader() = default;
  Status ReadDirectory();

  std::string content_;
  std::vector<Member> members_;
};

/// Makes an archive in memory.
class ZipWriter {
 public:
  /// InvalidArgument when the archive grows beyond 4 GiB, which needs ZIP64.
  Status Add(std::string_view name, std::string_view content, bool compress);
  /// The archive. Nothing may be added after.
  std::string Finish();

 private:
  std::string archive_;
  std::string directory_;
  int count_ = 0;
};

}  // namespace tenon
