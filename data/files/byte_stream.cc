// SPDX-License-Identifier: Apache-2.0
#include "data/files/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "data/files/memory_claim.h"
#include "data/files/zstd_source.h"

namespace tenon {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
/// Deflate cannot make more of a byte than this.
constexpr int64_t kMaxGzipRatio = 1032;

class FileSource final : public ByteSource {
 public:
  FileSource(std::unique_ptr<InputFile> file, int64_t offset)
      : file_(std::move(file)), offset_(offset) {}

  StatusOr<size_t> Read(size_t size, char* out) override {
    size_t done = 0;
    while (done < size) {
      if (begin_ == end_) {
        if (size - done >= kBufferBytes) {  // past the buffer: large reads are not copied
          TENON_ASSIGN_OR_RETURN(const size_t n, file_->ReadAt(offset_, size - done, out + done));
          offset_ += static_cast<int64_t>(n);
          return done + n;
        }
        // A file of a few bytes, or the end of one, takes no more; it may have grown meanwhile.
        const auto left = static_cast<size_t>(std::max<int64_t>(file_->size() - offset_, 0));
        buffer_.resize(std::min(kBufferBytes, std::max<size_t>(left, 4096)));
        TENON_ASSIGN_OR_RETURN(end_, file_->ReadAt(offset_, buffer_.size(), buffer_.data()));
        begin_ = 0;
        offset_ += static_cast<int64_t>(end_);
        if (end_ == 0) break;
      }
      const size_t n = std::min(size - done, end_ - begin_);
      std::memcpy(out + done, buffer_.data() + begin_, n);
      begin_ += n;
      done += n;
    }
    return done;
  }

  int64_t Bound() const override {
    return std::max<int64_t>(file_->size() - offset_, 0) + static_cast<int64_t>(end_ - begin_);
  }

 private:
  const std::unique_ptr<InputFile> file_;
  int64_t offset_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_(bytes) {}
  StatusOr<size_t> Read(size_t size, char* out) override {
    const size_t n = std::min(size, rest_.size());
    std::memcpy(out, rest_.data(), n);
    rest_.remove_prefix(n);
    return n;
  }
  int64_t Bound() const override { return static_cast<int64_t>(rest_.size()); }

 private:
  std::string_view rest_;
};

class InflateSource final : public ByteSource {
 public:
  /// 32 more window bits: gzip and zlib headers are told apart by zlib itself.
  static constexpr int kAnyHeader = 15 + 32;
  static constexpr int kNoHeader = -15;

  InflateSource(std::unique_ptr<ByteSource> from, int window_bits)
      : from_(std::move(from)), several_(window_bits == kAnyHeader), buffer_(kBufferBytes) {
    ready_ = inflateInit2(&z_, window_bits) == Z_OK;
  }
  ~InflateSource() override { inflateEnd(&z_); }

  StatusOr<size_t> Read(size_t size, char* out) override {
    if (!ready_) return ResourceExhausted("zlib has no memory");
    size_t done = 0;
    while (done < size && !ended_) {
      if (z_.avail_in == 0) TENON_RETURN_IF_ERROR(Fill());
      if (z_.avail_in == 0) {
        if (!inside_) break;
        return DataLoss("the compressed data is cut short at byte ", filled_);
      }
      const size_t step = std::min<size_t>(size - done, 1u << 30);
      z_.next_out = reinterpret_cast<Bytef*>(out + done);
      z_.avail_out = static_cast<uInt>(step);
      inside_ = true;
      const int result = inflate(&z_, Z_NO_FLUSH);
      done += step - z_.avail_out;
      if (result == Z_STREAM_END) {
        TENON_RETURN_IF_ERROR(NextMember());
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return DataLoss("the compressed data is damaged at byte ", filled_ - z_.avail_in, ": ",
                        z_.msg == nullptr ? "wrong stream" : z_.msg);
      }
    }
    return done;
  }

  int64_t Bound() const override {
    // What zlib has taken in but not given out yet is at most a window.
    int64_t bound;
    if (__builtin_mul_overflow(from_->Bound(), kMaxGzipRatio, &bound)) return INT64_MAX;
    const int64_t more = (int64_t{z_.avail_in} + 1) * kMaxGzipRatio + (64 << 10);
    return __builtin_add_overflow(bound, more, &bound) ? INT64_MAX : bound;
  }

 private:
  Status Fill() {
    TENON_ASSIGN_OR_RETURN(const size_t n, from_->Read(buffer_.size(), buffer_.data()));
    z_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    z_.avail_in = static_cast<uInt>(n);
    filled_ += static_cast<int64_t>(n);
    return OkStatus();
  }
  /// Gzip files may be several, one after another; what else follows a stream is padding.
  Status NextMember() {
    inside_ = false;
    if (several_ && z_.avail_in == 0) TENON_RETURN_IF_ERROR(Fill());
    if (several_ && z_.avail_in > 0 && *z_.next_in == 0x1f) {
      inflateReset(&z_);
    } else {
      ended_ = true;
    }
    return OkStatus();
  }

  const std::unique_ptr<ByteSource> from_;
  const bool several_;  // another stream may follow
  std::vector<char> buffer_;
  z_stream z_ = {};
  int64_t filled_ = 0;  // bytes that were put into the buffer
  bool ready_ = false;
  bool inside_ = false;  // a stream has begun and not ended
  bool ended_ = false;
};

class DeflateFile final : public OutputFile {
 public:
  DeflateFile(std::unique_ptr<OutputFile> to, Compression compression)
      : to_(std::move(to)), buffer_(kBufferBytes) {
    const int window = compression == Compression::kGzip ? 15 + 16 : 15;
    ready_ =
        deflateInit2(&z_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK;
  }
  ~DeflateFile() override {
    Close().IgnoreError();
    deflateEnd(&z_);
  }

  Status Append(std::string_view data) override {
    while (!data.empty()) {
      const std::string_view part = data.substr(0, 1u << 30);
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(part.data()));
      z_.avail_in = static_cast<uInt>(part.size());
      TENON_RETURN_IF_ERROR(Run(Z_NO_FLUSH));
      data.remove_prefix(part.size());
    }
    return OkStatus();
  }
  Status Flush() override {
    TENON_RETURN_IF_ERROR(Run(Z_SYNC_FLUSH));
    return to_->Flush();
  }
  Status Sync() override {
    TENON_RETURN_IF_ERROR(Run(Z_SYNC_FLUSH));
    return to_->Sync();
  }
  Status Close() override {
    if (closed_) return OkStatus();
    closed_ = true;
    TENON_RETURN_IF_ERROR(Run(Z_FINISH));
    return to_->Close();
  }

 private:
  Status Run(int flush) {
    if (!ready_) return ResourceExhausted("zlib has no memory");
    do {
      z_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      z_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&z_, flush);
      TENON_RETURN_IF_ERROR(to_->Append({buffer_.data(), buffer_.size() - z_.avail_out}));
    } while (z_.avail_out == 0);
    return OkStatus();
  }

  const std::unique_ptr<OutputFile> to_;
  std::vector<char> buffer_;
  z_stream z_ = {};
  bool ready_ = false;
  bool closed_ = false;
};

std::unique_ptr<ByteSource> Decompressed(std::unique_ptr<ByteSource> from,
                                         Compression compression) {
  if (compression == Compression::kNone) return from;
  if (compression == Compression::kZstd) return MakeZstdSource(std::move(from));
  return std::make_unique<InflateSource>(std::move(from), InflateSource::kAnyHeader);
}

}  // namespace

StatusOr<Compression> ParseCompression(std::string_view name) {
  if (name.empty() || name == "NONE") return Compression::kNone;
  if (name == "GZIP") return Compression::kGzip;
  if (name == "ZLIB") return Compression::kZlib;
  return InvalidArgument("compression '", name, "' is not one of '', NONE, GZIP, ZLIB");
}

std::unique_ptr<ByteSource> MakeSource(std::unique_ptr<InputFile> file, Compression compression,
                                       int64_t offset) {
  return Decompressed(std::make_unique<FileSource>(std::move(file), offset), compression);
}

std::unique_ptr<ByteSource> MakeSource(std::string_view bytes, Compression compression) {
  return Decompressed(std::make_unique<MemorySource>(bytes), compression);
}

Compression DetectCompression(std::string_view head) {
  if (head.size() < 2) return Compression::kNone;
  if (BeginsAsZstd(head)) return Compression::kZstd;
  const auto a = static_cast<unsigned char>(head[0]), b = static_cast<unsigned char>(head[1]);
  if (a == 0x1f && b == 0x8b) return Compression::kGzip;
  // A zlib header: deflate, a window of at most 32 KiB, and both bytes a multiple of 31.
  if ((a & 0x0f) == 8 && (a >> 4) <= 7 && (a * 256 + b) % 31 == 0) return Compression::kZlib;
  return Compression::kNone;
}

Compression DetectTextCompression(std::string_view head) {
  const Compression compression = DetectCompression(head);
  return compression == Compression::kZlib ? Compression::kNone : compression;
}

StatusOr<std::unique_ptr<ByteSource>> OpenSource(const std::string& path,
                                                 std::optional<Compression> compression,
                                                 const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(auto file, OpenInput(path, context));
  if (!compression) {
    char head[4];
    TENON_ASSIGN_OR_RETURN(const size_t n, file->ReadAt(0, sizeof(head), head));
    compression = DetectCompression({head, n});
  }
  return MakeSource(std::move(file), *compression);
}

std::unique_ptr<ByteSource> MakeInflater(std::unique_ptr<ByteSource> deflated) {
  return std::make_unique<InflateSource>(std::move(deflated), InflateSource::kNoHeader);
}

StatusOr<std::unique_ptr<ByteSource>> OpenTextSource(const std::string& path,
                                                     const FileContext& context) {
  TENON_ASSIGN_OR_RETURN(auto file, OpenInput(path, context));
  char head[4];
  TENON_ASSIGN_OR_RETURN(const size_t n, file->ReadAt(0, sizeof(head), head));
  return MakeSource(std::move(file), DetectTextCompression({head, n}));
}

std::unique_ptr<OutputFile> MakeCompressor(std::unique_ptr<OutputFile> file,
                                           Compression compression) {
  if (compression == Compression::kNone) return file;
  TENON_CHECK(compression != Compression::kZstd, "files are not written with zstd");
  return std::make_unique<DeflateFile>(std::move(file), compression);
}

Status ReadExactly(ByteSource& source, uint64_t size, std::string* out) {
  out->clear();
  const uint64_t possible = static_cast<uint64_t>(std::max<int64_t>(source.Bound(), 0));
  // A bound says what cannot come, not what will: memory grows with what does come.
  constexpr uint64_t kStep = 16 << 20;
  MemoryClaim claim;
  while (out->size() < size) {
    const size_t begin = out->size();
    const uint64_t step = std::min({size - begin, kStep, possible});
    if (begin > 0) TENON_RETURN_IF_ERROR(claim.GrowTo(begin + step));
    out->resize(begin + step);
    TENON_ASSIGN_OR_RETURN(const size_t n, source.Read(step, out->data() + begin));
    out->resize(begin + n);
    if (n < step || step == 0) {
      return DataLoss("found ", out->size(), " bytes, wanted ", size);
    }
  }
  return OkStatus();
}

}  // namespace tenon
