// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "data/files/memory_claim.h"

namespace tenon {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50;
constexpr uint32_t kDirectoryMark = 0x02014b50;
constexpr uint32_t kEndMark = 0x06054b50;
constexpr uint32_t kEnd64Mark = 0x06064b50;
constexpr uint32_t kLocator64Mark = 0x07064b50;
constexpr size_t kLocalBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                 kLocatorBytes = 20;
/// Deflate cannot make more of a byte than this.
constexpr uint64_t kMaxDeflateRatio = 1032;

template <typename T>
T Get(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

template <typename... Ts>
void Put(std::string* out, Ts... values) {
  (out->append(reinterpret_cast<const char*>(&values), sizeof(values)), ...);
}

uint32_t Crc32(std::string_view data) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

/// Replaces the sizes that do not fit in 32 bits by those of the ZIP64 extra field.
bool ApplyZip64(std::string_view extra, ZipReader::Member* m) {
  while (extra.size() >= 4) {
    const auto id = Get<uint16_t>(extra, 0), size = Get<uint16_t>(extra, 2);
    if (size > extra.size() - 4) return false;
    if (id == 1) {
      std::string_view field = extra.substr(4, size);
      for (uint64_t* value : {&m->size, &m->compressed_size, &m->header_offset}) {
        if (*value != UINT32_MAX) continue;
        if (field.size() < 8) return false;
        *value = Get<uint64_t>(field, 0);
        field.remove_prefix(8);
      }
    }
    extra.remove_prefix(4 + size);
  }
  return true;
}

}  // namespace

StatusOr<ZipReader> ZipReader::Open(std::string content) {
  ZipReader reader;
  reader.content_ = std::move(content);
  TENON_RETURN_IF_ERROR(reader.ReadDirectory());
  return reader;
}

Status ZipReader::ReadDirectory() {
  const std::string_view bytes = content_;
  // The end record is last, but for a comment of at most 65535 bytes.
  size_t end = std::string_view::npos;
  for (size_t back = kEndBytes; back <= bytes.size() && back <= kEndBytes + 65535; ++back) {
    if (Get<uint32_t>(bytes, bytes.size() - back) == kEndMark) {
      end = bytes.size() - back;
      break;
    }
  }
  if (end == std::string_view::npos) return DataLoss("not a ZIP archive, or it is cut short");
  uint64_t count = Get<uint16_t>(bytes, end + 10);
  uint64_t at = Get<uint32_t>(bytes, end + 16);
  if (end >= kLocatorBytes && Get<uint32_t>(bytes, end - kLocatorBytes) == kLocator64Mark) {
    const auto end64 = Get<uint64_t>(bytes, end - kLocatorBytes + 8);
    if (end64 > end || end - end64 < kEnd64Bytes || Get<uint32_t>(bytes, end64) != kEnd64Mark) {
      return DataLoss("the ZIP64 end record is damaged");
    }
    count = Get<uint64_t>(bytes, end64 + 32);
    at = Get<uint64_t>(bytes, end64 + 48);
  }
  for (uint64_t i = 0; i < count; ++i) {
    const Status damaged = DataLoss("entry ", i, " of the ZIP directory is damaged");
    if (at > end || end - at < kDirectoryBytes || Get<uint32_t>(bytes, at) != kDirectoryMark) {
      return damaged;
    }
    const std::string_view entry = bytes.substr(at, end - at);
    const size_t name = Get<uint16_t>(entry, 28), extra = Get<uint16_t>(entry, 30),
                 comment = Get<uint16_t>(entry, 32);
    if (entry.size() - kDirectoryBytes < name + extra + comment) return damaged;
    Member m;
    m.name = entry.substr(kDirectoryBytes, name);
    m.method = Get<uint16_t>(entry, 10);
    m.crc32 = Get<uint32_t>(entry, 16);
    m.compressed_size = Get<uint32_t>(entry, 20);
    m.size = Get<uint32_t>(entry, 24);
    m.header_offset = Get<uint32_t>(entry, 42);
    if (!ApplyZip64(entry.substr(kDirectoryBytes + name, extra), &m)) return damaged;
    members_.push_back(std::move(m));
    at += kDirectoryBytes + name + extra + comment;
  }
  return OkStatus();
}

const ZipReader::Member* ZipReader::Find(std::string_view name) const {
  const auto it = std::find_if(members_.begin(), members_.end(),
                               [&](const Member& m) { return m.name == name; });
  return it == members_.end() ? nullptr : &*it;
}

StatusOr<std::string> ZipReader::Read(const Member& m) const {
  const Status damaged = DataLoss("member '", m.name, "' of the ZIP archive is damaged");
  const std::string_view bytes = content_;
  if (m.header_offset > bytes.size() || bytes.size() - m.header_offset < kLocalBytes ||
      Get<uint32_t>(bytes, m.header_offset) != kLocalMark) {
    return damaged;
  }
  const uint64_t begin = m.header_offset + kLocalBytes +
                         Get<uint16_t>(bytes, m.header_offset + 26) +
                         Get<uint16_t>(bytes, m.header_offset + 28);
  if (begin > bytes.size() || bytes.size() - begin < m.compressed_size) return damaged;
  const std::string_view data = bytes.substr(begin, m.compressed_size);
  std::string content;
  MemoryClaim claim;
  if (m.method == 0) {
    TENON_RETURN_IF_ERROR(claim.GrowTo(data.size()));
    content = data;
  } else if (m.method == 8) {
    if (m.size > (m.compressed_size + 1) * kMaxDeflateRatio || m.compressed_size > UINT32_MAX ||
        m.size > UINT32_MAX) {
      return damaged;
    }
    TENON_RETURN_IF_ERROR(claim.GrowTo(m.size));
    content.resize(m.size);
    z_stream z = {};
    if (inflateInit2(&z, -15) != Z_OK) return ResourceExhausted("zlib has no memory");
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    z.avail_in = static_cast<uInt>(data.size());
    z.next_out = reinterpret_cast<Bytef*>(content.data());
    z.avail_out = static_cast<uInt>(content.size());
    const int result = inflate(&z, Z_FINISH);
    const bool whole = result == Z_STREAM_END && z.avail_out == 0;
    inflateEnd(&z);
    if (!whole) return damaged;
  } else {
    return Unimplemented("member '", m.name, "' is compressed with ZIP method ", m.method,
                         "; 0 and 8 are read");
  }
  if (content.size() != m.size || Crc32(content) != m.crc32) return damaged;
  return content;
}

Status ZipWriter::Add(std::string_view name, std::string_view content, bool compress) {
  std::string deflated;
  if (compress) {
    uLongf bound = compressBound(content.size());
    deflated.resize(bound);
    z_stream z = {};
    if (content.size() > UINT32_MAX ||
        deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      return ResourceExhausted("cannot compress ", content.size(), " bytes");
    }
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    z.avail_in = static_cast<uInt>(content.size());
    z.next_out = reinterpret_cast<Bytef*>(deflated.data());
    z.avail_out = static_cast<uInt>(bound);
    deflate(&z, Z_FINISH);
    deflated.resize(bound - z.avail_out);
    deflateEnd(&z);
  }
  const std::string_view data = compress ? std::string_view(deflated) : content;
  if (archive_.size() + data.size() + directory_.size() > UINT32_MAX - (1u << 20) ||
      content.size() > UINT32_MAX || name.size() > UINT16_MAX || count_ == UINT16_MAX) {
    return InvalidArgument("the archive becomes larger than ZIP without ZIP64 allows");
  }
  const auto offset = static_cast<uint32_t>(archive_.size());
  // Version 2.0, no flags, method, the DOS date 1980-01-01, checksum, sizes, length of the name.
  const auto fields = [&](std::string* out) {
    Put(out, uint16_t{20}, uint16_t{0}, static_cast<uint16_t>(compress ? 8 : 0), uint16_t{0},
        uint16_t{0x21}, Crc32(content), static_cast<uint32_t>(data.size()),
        static_cast<uint32_t>(content.size()), static_cast<uint16_t>(name.size()), uint16_t{0});
  };
  Put(&archive_, kLocalMark);
  fields(&archive_);
  archive_.append(name);
  archive_.append(data);
  Put(&directory_, kDirectoryMark, uint16_t{20});
  fields(&directory_);
  Put(&directory_, uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, offset);
  directory_.append(name);
  ++count_;
  return OkStatus();
}

std::string ZipWriter::Finish() {
  const auto offset = static_cast<uint32_t>(archive_.size());
  const auto count = static_cast<uint16_t>(count_);
  archive_.append(directory_);
  Put(&archive_, kEndMark, uint16_t{0}, uint16_t{0}, count, count,
      static_cast<uint32_t>(directory_.size()), offset, uint16_t{0});
  return std::move(archive_);
}

}  // namespace tenon
