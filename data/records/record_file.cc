// SPDX-License-Identifier: Apache-2.0
#include "data/records/record_file.h"

#include <array>
#include <cstring>

#include "data/files/crc32c.h"

namespace tenon {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kChecksumBytes = 4;
constexpr size_t kHeaderBytes = kLengthBytes + kChecksumBytes;
using Header = std::array<char, kHeaderBytes>;

uint32_t StoredChecksum(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

bool IsHeader(std::string_view bytes) {
  return bytes.size() >= kHeaderBytes && StoredChecksum(bytes.data() + kLengthBytes) ==
                                             MaskCrc32c(Crc32c(bytes.substr(0, kLengthBytes)));
}

}  // namespace

StatusOr<std::unique_ptr<RecordReader>> RecordReader::Open(const std::string& path,
                                                           std::optional<Compression> compression,
                                                           const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(auto file, OpenInput(path, context));
  if (!compression) {
    Header head;
    TENON_ASSIGN_OR_RETURN(const size_t n, file->ReadAt(0, head.size(), head.data()));
    // A length may look like the mark of a compressed file, but its checksum tells.
    const std::string_view bytes(head.data(), n);
    compression = IsHeader(bytes) ? Compression::kNone : DetectCompression(bytes);
  }
  return std::make_unique<RecordReader>(MakeSource(std::move(file), *compression), path);
}

Status RecordReader::Damaged(std::string_view what) const {
  return DataLoss("'", name_, "': the record at byte ", offset_, " is damaged: ", what);
}

StatusOr<bool> RecordReader::Read(std::string* record) {
  Header header;
  StatusOr<size_t> found = source_->Read(header.size(), header.data());
  if (!found.ok()) return Annotate(found.status(), StrCat("'", name_, "' at byte ", offset_));
  if (*found == 0) return false;
  if (*found < header.size()) {
    return Damaged(StrCat("found ", *found, " bytes of its header, wanted ", header.size()));
  }
  if (!IsHeader({header.data(), header.size()})) return Damaged("its length has a wrong checksum");
  uint64_t length;
  std::memcpy(&length, header.data(), sizeof(length));
  if (length > UINT64_MAX - kChecksumBytes) return Damaged(StrCat("its length is ", length));
  Status status = ReadExactly(*source_, length + kChecksumBytes, record);
  if (!status.ok()) {
    return status.code() == StatusCode::kDataLoss ? Damaged(Message(status)) : status;
  }
  const uint32_t stored = StoredChecksum(record->data() + length);
  record->resize(length);
  if (stored != MaskCrc32c(Crc32c(*record))) return Damaged("its data has a wrong checksum");
  offset_ += static_cast<int64_t>(kHeaderBytes + length + kChecksumBytes);
  return true;
}

StatusOr<std::unique_ptr<RecordWriter>> RecordWriter::Create(const std::string& path,
                                                             Compression compression,
                                                             WriteMode mode,
                                                             const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(auto file, OpenOutput(path, mode, context));
  return std::make_unique<RecordWriter>(MakeCompressor(std::move(file), compression));
}

Status RecordWriter::Write(std::string_view record) {
  Header header;
  const uint64_t length = record.size();
  std::memcpy(header.data(), &length, sizeof(length));
  const uint32_t length_crc = MaskCrc32c(Crc32c({header.data(), kLengthBytes}));
  std::memcpy(header.data() + kLengthBytes, &length_crc, sizeof(length_crc));
  const uint32_t data_crc = MaskCrc32c(Crc32c(record));
  TENON_RETURN_IF_ERROR(file_->Append({header.data(), header.size()}));
  TENON_RETURN_IF_ERROR(file_->Append(record));
  return file_->Append({reinterpret_cast<const char*>(&data_crc), sizeof(data_crc)});
}

}  // namespace tenon
