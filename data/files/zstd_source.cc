// SPDX-License-Identifier: Apache-2.0
#include "data/files/zstd_source.h"

#include <zstd.h>

#include <algorithm>
#include <vector>

namespace tenon {
namespace {

constexpr size_t kZstdBufferBytes = 256 << 10;
/// The most that zstd makes of a byte: a block of 128 KiB of one byte takes four.
constexpr int64_t kMaxZstdRatio = 32 << 10;
/// How far a frame may refer back: zstd refuses those that ask for more memory.
constexpr int64_t kMaxWindowBytes = 128 << 20;

class ZstdSource final : public ByteSource {
 public:
  explicit ZstdSource(std::unique_ptr<ByteSource> from)
      : from_(std::move(from)), buffer_(kZstdBufferBytes), stream_(ZSTD_createDStream()) {
    if (stream_ != nullptr) wanted_ = ZSTD_initDStream(stream_);
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }

  StatusOr<size_t> Read(size_t size, char* out) override {
    if (stream_ == nullptr) return ResourceExhausted("zstd has no memory");
    ZSTD_outBuffer to = {out, size, 0};
    while (to.pos < size) {
      // A decoder that has filled what it was given may have more without more input.
      if (begin_ == end_ && !has_more_) {
        TENON_RETURN_IF_ERROR(Fill());
        if (end_ == 0) {
          if (!inside_) break;
          return DataLoss("the compressed data is cut short at byte ", taken_);
        }
      }
      TENON_RETURN_IF_ERROR(Decompress(&to));
    }
    return to.pos;
  }

  int64_t Bound() const override {
    int64_t bound;
    if (__builtin_add_overflow(from_->Bound(), static_cast<int64_t>(end_ - begin_) + 4, &bound) ||
        __builtin_mul_overflow(bound, kMaxZstdRatio, &bound) ||
        __builtin_add_overflow(bound, 2 * kMaxWindowBytes, &bound)) {
      return INT64_MAX;
    }
    return bound;
  }

 private:
  Status Fill() {
    begin_ = 0;
    TENON_ASSIGN_OR_RETURN(end_, from_->Read(buffer_.size(), buffer_.data()));
    return OkStatus();
  }

  Status Decompress(ZSTD_outBuffer* to) {
    // The decoder is given what it asks for, a block at most, so that a mistake has a place.
    const size_t size = std::min(end_ - begin_, std::max<size_t>(wanted_, 1));
    ZSTD_inBuffer in = {buffer_.data() + begin_, size, 0};
    inside_ |= size > 0;
    const size_t result = ZSTD_decompressStream(stream_, to, &in);
    if (ZSTD_isError(result)) {
      return DataLoss("the compressed data is damaged at byte ", taken_, ": ",
                      ZSTD_getErrorName(result));
    }
    begin_ += in.pos;
    taken_ += static_cast<int64_t>(in.pos);
    has_more_ = to->pos == to->size;
    if (result == 0) has_more_ = inside_ = false;
    wanted_ = result == 0 ? ZSTD_initDStream(stream_) : result;
    return OkStatus();
  }

  const std::unique_ptr<ByteSource> from_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  ZSTD_DStream* const stream_;
  size_t wanted_ = 0;      // bytes that the decoder asks for
  int64_t taken_ = 0;      // bytes that it has taken
  bool has_more_ = false;  // it may have more to give of what it has taken
  bool inside_ = false;    // a frame has begun and not ended
};

}  // namespace

bool BeginsAsZstd(std::string_view head) {
  if (head.size() < 4) return false;
  const auto byte = [&](int i) { return static_cast<unsigned char>(head[i]); };
  // A frame, or one of those that hold no text, which programs with several threads write first.
  const bool is_frame = byte(0) == 0x28 && byte(1) == 0xb5 && byte(2) == 0x2f && byte(3) == 0xfd;
  const bool is_skipped =
      (byte(0) & 0xf0) == 0x50 && byte(1) == 0x2a && byte(2) == 0x4d && byte(3) == 0x18;
  return is_frame || is_skipped;
}

std::unique_ptr<ByteSource> MakeZstdSource(std::unique_ptr<ByteSource> from) {
  return std::make_unique<ZstdSource>(std::move(from));
}

}  // namespace tenon
