// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "data/files/byte_stream.h"
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

uint32_t Crc32(std::string_view data, uint32_t before = 0) {
  return static_cast<uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

/// A part of a file.
class RangeSource final : public ByteSource {
 public:
  RangeSource(std::shared_ptr<const InputFile> file, uint64_t offset, uint64_t size)
      : file_(std::move(file)), offset_(offset), left_(size) {}

  StatusOr<size_t> Read(size_t size, char* out) override {
    size = static_cast<size_t>(std::min<uint64_t>(size, left_));
    if (size == 0) return 0;
    TENON_ASSIGN_OR_RETURN(const size_t n, file_->ReadAt(static_cast<int64_t>(offset_), size, out));
    offset_ += n;
    left_ -= n;
    return n;
  }
  int64_t Bound() const override { return static_cast<int64_t>(left_); }

 private:
  const std::shared_ptr<const InputFile> file_;
  uint64_t offset_, left_;
};

/// The content of a member, whose checksum it compares at the end.
class MemberSource final : public ByteSource {
 public:
  MemberSource(std::unique_ptr<ByteSource> from, const ZipReader::Member& member)
      : from_(std::move(from)), name_(member.name), wanted_(member.crc32), left_(member.size) {}

  StatusOr<size_t> Read(size_t size, char* out) override {
    // A piece is still in a cache when the checksum reads it.
    constexpr size_t kPiece = 256 << 10;
    size_t done = 0;
    while (done < size && left_ > 0) {
      const auto piece = static_cast<size_t>(std::min<uint64_t>({size - done, kPiece, left_}));
      TENON_ASSIGN_OR_RETURN(const size_t n, from_->Read(piece, out + done));
      if (n < piece) return Damaged();
      found_ = Crc32({out + done, n}, found_);
      done += n;
      left_ -= n;
    }
    if (left_ == 0 && !ended_) {
      char more;
      TENON_ASSIGN_OR_RETURN(const size_t n, from_->Read(1, &more));
      if (n > 0 || found_ != wanted_) return Damaged();
      ended_ = true;
    }
    return done;
  }
  int64_t Bound() const override { return static_cast<int64_t>(left_); }

 private:
  Status Damaged() const { return DataLoss("member '", name_, "' of the ZIP archive is damaged"); }

  const std::unique_ptr<ByteSource> from_;
  const std::string name_;
  const uint32_t wanted_;
  uint32_t found_ = 0;
  uint64_t left_;
  bool ended_ = false;
};

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

/// Bytes [begin, end) of a file that had as many.
StatusOr<std::string> ReadRange(const InputFile& file, uint64_t begin, uint64_t end) {
  std::string bytes(end - begin, '\0');
  TENON_ASSIGN_OR_RETURN(const size_t n,
                         file.ReadAt(static_cast<int64_t>(begin), bytes.size(), bytes.data()));
  if (n < bytes.size()) return DataLoss("the file became shorter while it was read");
  return bytes;
}

}  // namespace

StatusOr<ZipReader> ZipReader::Open(std::shared_ptr<const InputFile> file) {
  ZipReader reader(std::move(file));
  TENON_RETURN_IF_ERROR(reader.ReadDirectory());
  return reader;
}

Status ZipReader::ReadDirectory() {
  const auto size = static_cast<uint64_t>(std::max<int64_t>(file_->size(), 0));
  // The end record is last, but for a comment of at most 65535 bytes.
  const uint64_t tail_begin = size - std::min<uint64_t>(size, kLocatorBytes + kEndBytes + 65535);
  TENON_ASSIGN_OR_RETURN(const std::string tail, ReadRange(*file_, tail_begin, size));
  size_t end = std::string::npos;  // in the tail
  for (size_t back = kEndBytes; back <= tail.size() && back <= kEndBytes + 65535; ++back) {
    if (Get<uint32_t>(tail, tail.size() - back) == kEndMark) {
      end = tail.size() - back;
      break;
    }
  }
  if (end == std::string::npos) return DataLoss("not a ZIP archive, or it is cut short");
  const uint64_t directory_end = tail_begin + end;
  uint64_t count = Get<uint16_t>(tail, end + 10);
  uint64_t at = Get<uint32_t>(tail, end + 16);
  if (end >= kLocatorBytes && Get<uint32_t>(tail, end - kLocatorBytes) == kLocator64Mark) {
    const Status damaged = DataLoss("the ZIP64 end record is damaged");
    const auto end64 = Get<uint64_t>(tail, end - kLocatorBytes + 8);
    if (end64 > directory_end || directory_end - end64 < kEnd64Bytes) return damaged;
    TENON_ASSIGN_OR_RETURN(const std::string record, ReadRange(*file_, end64, end64 + kEnd64Bytes));
    if (Get<uint32_t>(record, 0) != kEnd64Mark) return damaged;
    count = Get<uint64_t>(record, 32);
    at = Get<uint64_t>(record, 48);
  }
  if (count == 0) return OkStatus();
  if (at > directory_end) return DataLoss("entry 0 of the ZIP directory is damaged");
  MemoryClaim claim;
  TENON_RETURN_IF_ERROR(claim.GrowTo(directory_end - at));
  TENON_ASSIGN_OR_RETURN(const std::string directory, ReadRange(*file_, at, directory_end));
  return AddMembers(directory, count);
}

Status ZipReader::AddMembers(std::string_view directory, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    const Status damaged = DataLoss("entry ", i, " of the ZIP directory is damaged");
    if (directory.size() < kDirectoryBytes || Get<uint32_t>(directory, 0) != kDirectoryMark) {
      return damaged;
    }
    const size_t name = Get<uint16_t>(directory, 28), extra = Get<uint16_t>(directory, 30),
                 comment = Get<uint16_t>(directory, 32);
    if (directory.size() - kDirectoryBytes < name + extra + comment) return damaged;
    Member m;
    m.name = directory.substr(kDirectoryBytes, name);
    m.method = Get<uint16_t>(directory, 10);
    m.crc32 = Get<uint32_t>(directory, 16);
    m.compressed_size = Get<uint32_t>(directory, 20);
    m.size = Get<uint32_t>(directory, 24);
    m.header_offset = Get<uint32_t>(directory, 42);
    if (!ApplyZip64(directory.substr(kDirectoryBytes + name, extra), &m)) return damaged;
    members_.push_back(std::move(m));
    directory.remove_prefix(kDirectoryBytes + name + extra + comment);
  }
  return OkStatus();
}

const ZipReader::Member* ZipReader::Find(std::string_view name) const {
  const auto it = std::find_if(members_.begin(), members_.end(),
                               [&](const Member& m) { return m.name == name; });
  return it == members_.end() ? nullptr : &*it;
}

StatusOr<std::unique_ptr<ByteSource>> ZipReader::Stream(const Member& m) const {
  const Status damaged = DataLoss("member '", m.name, "' of the ZIP archive is damaged");
  const auto size = static_cast<uint64_t>(file_->size());
  if (m.header_offset > size || size - m.header_offset < kLocalBytes) return damaged;
  TENON_ASSIGN_OR_RETURN(const std::string header,
                         ReadRange(*file_, m.header_offset, m.header_offset + kLocalBytes));
  if (Get<uint32_t>(header, 0) != kLocalMark) return damaged;
  const uint64_t begin =
      m.header_offset + kLocalBytes + Get<uint16_t>(header, 26) + Get<uint16_t>(header, 28);
  if (begin > size || size - begin < m.compressed_size) return damaged;
  std::unique_ptr<ByteSource> data = std::make_unique<RangeSource>(file_, begin, m.compressed_size);
  if (m.method == 8) {
    if (m.size / kMaxDeflateRatio > m.compressed_size) return damaged;
    data = MakeInflater(std::move(data));
  } else if (m.method != 0) {
    return Unimplemented("member '", m.name, "' is compressed with ZIP method ", m.method,
                         "; 0 and 8 are read");
  } else if (m.size != m.compressed_size) {
    return damaged;
  }
  return std::make_unique<MemberSource>(std::move(data), m);
}

StatusOr<std::string> ZipReader::Read(const Member& m) const {
  TENON_ASSIGN_OR_RETURN(const auto source, Stream(m));
  MemoryClaim claim;
  TENON_RETURN_IF_ERROR(claim.GrowTo(m.size));
  std::string content(m.size, '\0');
  TENON_RETURN_IF_ERROR(source->Read(content.size(), content.data()).status());
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
