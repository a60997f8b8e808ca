// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/interruption.h"
#include "core/memory/counted_memory.h"
#include "ops/image/codecs.h"

// GIF89a, and GIF87a before it: frames of colours out of a table, each of them compressed by LZW
// and drawn over the frame before it.

namespace tenon {
namespace {

constexpr int kMaxCodeBits = 12;
constexpr int kMaxCodes = 1 << kMaxCodeBits;
constexpr int kChannels = 3;

Status TooShort(std::string_view what) {
  return InvalidArgument("the GIF file ends within its ", what);
}

/// Reads a file from its beginning.
class Bytes {
 public:
  explicit Bytes(std::string_view file) : rest_(file) {}

  bool empty() const { return rest_.empty(); }
  StatusOr<std::string_view> Take(size_t n, std::string_view what) {
    if (rest_.size() < n) return TooShort(what);
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  StatusOr<int> Byte(std::string_view what) {
    TENON_ASSIGN_OR_RETURN(const std::string_view byte, Take(1, what));
    return static_cast<unsigned char>(byte[0]);
  }
  /// Blocks of up to 255 bytes, each after its length, up to one of length 0.
  Status SkipBlocks(std::string_view what, size_t* bytes = nullptr) {
    for (;;) {
      TENON_ASSIGN_OR_RETURN(const int length, Byte(what));
      if (length == 0) return OkStatus();
      TENON_RETURN_IF_ERROR(Take(static_cast<size_t>(length), what).status());
      if (bytes != nullptr) *bytes += static_cast<size_t>(length);
    }
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

int64_t Number16(std::string_view bytes, size_t at) {
  return static_cast<unsigned char>(bytes[at]) | static_cast<unsigned char>(bytes[at + 1]) << 8;
}

/// A frame as the file has it.
struct Frame {
  int64_t left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  std::string_view colors = {};  // three bytes each
  int transparent = -1;          // a colour that leaves the pixel as it was; -1: none
  int code_bits = 0;             // of a colour
  std::string_view data = {};    // from the first block on

  int64_t pixels() const { return width * height; }
};

StatusOr<std::string_view> TakeColors(Bytes& bytes, int flags) {
  return bytes.Take(size_t{3} << ((flags & 7) + 1), "table of colours");
}

StatusOr<Frame> ReadFrame(Bytes& bytes, std::string_view common_colors, int transparent) {
  TENON_ASSIGN_OR_RETURN(const std::string_view head, bytes.Take(9, "description of a frame"));
  Frame frame{.left = Number16(head, 0),
              .top = Number16(head, 2),
              .width = Number16(head, 4),
              .height = Number16(head, 6),
              .colors = common_colors,
              .transparent = transparent};
  const int flags = static_cast<unsigned char>(head[8]);
  frame.interlaced = (flags & 0x40) != 0;
  if ((flags & 0x80) != 0) {
    TENON_ASSIGN_OR_RETURN(frame.colors, TakeColors(bytes, flags));
  }
  TENON_ASSIGN_OR_RETURN(frame.code_bits, bytes.Byte("pixels"));
  frame.data = bytes.rest();
  size_t size = 0;
  TENON_RETURN_IF_ERROR(bytes.SkipBlocks("pixels", &size));
  if (frame.pixels() == 0 || frame.code_bits < 1 || frame.code_bits > 8) {
    return InvalidArgument("a frame of ", frame.width, " x ", frame.height, " pixels and ",
                           frame.code_bits, " bits, wanted pixels and 1 to 8 bits");
  }
  // A code has two bits at least and stands for a text of the table at most.
  if (frame.pixels() / (4 * kMaxCodes) > static_cast<int64_t>(size)) {
    return InvalidArgument("the GIF file has ", size, " bytes for a frame of ", frame.width, " x ",
                           frame.height, " pixels");
  }
  return frame;
}

/// The frames of the file, or the first one.
StatusOr<CountedVector<Frame>> ReadFrames(std::string_view file) {
  Bytes bytes(file);
  TENON_ASSIGN_OR_RETURN(const std::string_view head, bytes.Take(13, "head"));
  // The version may be any: there are but two, which are read alike.
  if (!head.starts_with("GIF")) return InvalidArgument("not a GIF file");
  const int flags = static_cast<unsigned char>(head[10]);
  std::string_view colors;
  if ((flags & 0x80) != 0) {
    TENON_ASSIGN_OR_RETURN(colors, TakeColors(bytes, flags));
  }
  CountedVector<Frame> frames;
  int transparent = -1;
  // Many files lack the last byte.
  while (!bytes.empty()) {
    TENON_ASSIGN_OR_RETURN(const int kind, bytes.Byte("blocks"));
    if (kind == ';') break;
    if (kind == ',') {
      TENON_ASSIGN_OR_RETURN(frames.emplace_back(), ReadFrame(bytes, colors, transparent));
      transparent = -1;
      continue;
    }
    if (kind != '!') return InvalidArgument("a GIF file has no blocks of kind ", kind);
    TENON_ASSIGN_OR_RETURN(const int label, bytes.Byte("extension"));
    constexpr int kGraphicControl = 0xf9;
    const std::string_view block = bytes.rest();
    TENON_RETURN_IF_ERROR(bytes.SkipBlocks("extension"));
    if (label == kGraphicControl && block[0] == 4) {
      transparent = (block[1] & 1) != 0 ? static_cast<unsigned char>(block[4]) : -1;
    }
  }
  if (frames.empty()) return InvalidArgument("the GIF file has no frame");
  return frames;
}

/// The codes of a frame.
class Codes {
 public:
  explicit Codes(std::string_view blocks) : blocks_(blocks) {}

  /// The next one, of `bits` bits; -1 behind the last block.
  int Next(int bits) {
    while (num_bits_ < bits) {
      if (left_ == 0) {
        left_ = static_cast<unsigned char>(blocks_[at_++]);
        if (left_ == 0) return -1;
      }
      waiting_ |= static_cast<uint32_t>(static_cast<unsigned char>(blocks_[at_++])) << num_bits_;
      num_bits_ += 8;
      --left_;
    }
    const int code = static_cast<int>(waiting_ & ((uint32_t{1} << bits) - 1));
    waiting_ >>= bits;
    num_bits_ -= bits;
    return code;
  }

 private:
  const std::string_view blocks_;  // complete: ReadFrame has walked over them
  size_t at_ = 0;
  int left_ = 0;  // bytes of the block
  uint32_t waiting_ = 0;
  int num_bits_ = 0;
};

/// Calls `pixel(colour)` for each pixel of the frame in the order of the file, until it is false.
template <typename Fn>
Status Decompress(const Frame& frame, Fn pixel) {
  const int clear = 1 << frame.code_bits, end = clear + 1;
  // Each text is another one and one colour more.
  std::array<uint16_t, kMaxCodes> before;
  std::array<uint8_t, kMaxCodes> last, text;
  int next = end + 1, bits = frame.code_bits + 1, previous = -1;
  uint8_t first = 0;  // colour of the previous text
  Codes codes(frame.data);
  for (int64_t left = frame.pixels(); left > 0;) {
    const int code = codes.Next(bits);
    if (code < 0 || code == end) return TooShort("pixels");
    if (code == clear) {
      next = end + 1;
      bits = frame.code_bits + 1;
      previous = -1;
      continue;
    }
    const bool is_new = code == next && previous >= 0 && next < kMaxCodes;
    if ((code >= next && !is_new) || (previous < 0 && code >= clear)) {
      return InvalidArgument("the pixels of the GIF file have the code ", code,
                             ", wanted less than ", previous < 0 ? clear : next);
    }
    // The text from its end on; the one that this code defines is the previous one and its first.
    int length = 0;
    if (is_new) text[length++] = first;
    int at = is_new ? previous : code;
    for (; at > end; at = before[at]) text[length++] = last[at];
    first = static_cast<uint8_t>(at);
    text[length++] = first;
    if (previous >= 0 && next < kMaxCodes) {
      before[next] = static_cast<uint16_t>(previous);
      last[next] = first;
      if (++next == 1 << bits && bits < kMaxCodeBits) ++bits;
    }
    previous = code;
    for (; length > 0 && left > 0; --left) {
      if (!pixel(text[--length])) return OkStatus();
    }
  }
  return OkStatus();
}

/// Draws the frame on a canvas that shows the one before it.
Status Draw(const Frame& frame, int64_t height, int64_t width, uint8_t* canvas) {
  const auto num_colors = static_cast<int>(frame.colors.size() / kChannels);
  // An interlaced frame begins with every eighth row; those half-way between follow, and so on.
  int64_t x = 0, y = 0, step = frame.interlaced ? 8 : 1;
  bool is_first_pass = true;
  int wrong = -1;
  const Status status = Decompress(frame, [&](uint8_t color) {
    const int64_t row = frame.top + y, column = frame.left + x;
    if (row < height && column < width && color != frame.transparent) {
      if (color >= num_colors) {
        wrong = color;
        return false;
      }
      std::memcpy(canvas + (row * width + column) * kChannels,
                  frame.colors.data() + color * kChannels, kChannels);
    }
    if (++x < frame.width) return true;
    x = 0;
    for (y += step; frame.interlaced && y >= frame.height && step > 1;) {
      step = is_first_pass ? 8 : step / 2;
      y = step / 2;
      is_first_pass = false;
    }
    return !Interrupted();
  });
  if (wrong < 0) return status;
  return InvalidArgument("found color index ", wrong, " outside of color map range ", num_colors);
}

}  // namespace

Status DecodeGifFile(std::string_view file, bool first_only, const FrameMemory& memory) {
  TENON_ASSIGN_OR_RETURN(const CountedVector<Frame> frames, ReadFrames(file));
  int64_t height = 0, width = 0;
  for (const Frame& frame : frames) {
    height = std::max(height, frame.height);
    width = std::max(width, frame.width);
  }
  const int64_t count = first_only ? 1 : static_cast<int64_t>(frames.size());
  TENON_ASSIGN_OR_RETURN(void* const pixels, memory(count, {height, width, kChannels}));
  const int64_t size = height * width * kChannels;
  auto* canvas = static_cast<uint8_t*>(pixels);
  for (int64_t i = 0; i < count && !Interrupted(); ++i, canvas += size) {
    if (i == 0) {
      std::memset(canvas, 0, size);
    } else {
      std::memcpy(canvas, canvas - size, size);
    }
    TENON_RETURN_IF_ERROR(Draw(frames[i], height, width, canvas));
  }
  return OkStatus();
}

}  // namespace tenon
