// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "data/files/byte_source.h"
#include "data/files/file_system.h"

// The part of the ZIP format that NumPy's .npz files use: members stored or deflated, also with the
// 64-bit sizes of ZIP64 when reading.

namespace tenon {

/// The members of an archive in a file, of which memory holds the directory alone. Checks every
/// offset and size: DataLoss for an archive that is damaged. Thread-safe once open.
///
/// Source: PKWARE's APPNOTE.TXT.
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

  static StatusOr<ZipReader> Open(std::shared_ptr<const InputFile> file);
  const std::vector<Member>& members() const { return members_; }
  /// Null when there is none.
  const Member* Find(std::string_view name) const;
  /// The content of a member, from front to back, which is `member.size` bytes. DataLoss from the
  /// read that reaches the end when checksum or size are wrong.
  StatusOr<std::unique_ptr<ByteSource>> Stream(const Member& member) const;
  /// The whole content.
  StatusOr<std::string> Read(const Member& member) const;

 private:
  explicit ZipReader(std::shared_ptr<const InputFile> file) : file_(std::move(file)) {}
  Status ReadDirectory();
  /// Appends the members of `directory`, of which there are `count`.
  Status AddMembers(std::string_view directory, uint64_t count);

  std::shared_ptr<const InputFile> file_;
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
