// SPDX-License-Identifier: Apache-2.0
#include "data/table/cut_records.h"

#include <emmintrin.h>

#include <bit>
#include <cstring>
#include <optional>

namespace tenon {
namespace {

/// The places of a text where a field, a record or a quote may begin or end, and of bytes 0, 64
/// bytes of text at a time.
class Marks {
 public:
  Marks(std::string_view text, const TableFormat& format)
      : text_(text),
        delimiter_(_mm_set1_epi8(format.delimiter)),
        quote_(_mm_set1_epi8(format.quotes ? '"' : format.delimiter)) {
    Seek(0);
  }

  /// The next place, which it goes behind; the size of the text at its end.
  size_t Next() {
    while (bits_ == 0) {
      block_ += kBlock;
      if (block_ >= text_.size()) return text_.size();
      bits_ = BitsOf(block_);
    }
    const size_t at = block_ + std::countr_zero(bits_);
    bits_ &= bits_ - 1;
    return at;
  }
  /// Goes to the place `at`.
  void Seek(size_t at) {
    block_ = at / kBlock * kBlock;
    bits_ = block_ < text_.size() ? BitsOf(block_) & (~uint64_t{0} << (at % kBlock)) : 0;
  }

 private:
  static constexpr size_t kBlock = 64;

  uint64_t BitsOf(size_t block) const {
    const char* data = text_.data() + block;
    char last[kBlock];
    if (text_.size() - block < kBlock) {
      std::memset(last, ' ', kBlock);
      std::memcpy(last, data, text_.size() - block);
      data = last;
    }
    uint64_t bits = 0;
    for (int i = 0; i < 4; ++i) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i));
      const __m128i ends = _mm_or_si128(_mm_cmpeq_epi8(bytes, delimiter_),
                                        _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n')));
      const __m128i others = _mm_or_si128(_mm_cmpeq_epi8(bytes, quote_),
                                          _mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
      const auto mask = static_cast<uint32_t>(_mm_movemask_epi8(_mm_or_si128(ends, others)));
      bits |= uint64_t{mask} << (16 * i);
    }
    // Blanks that fill the last block up are marked when they are the delimiter.
    if (text_.size() - block < kBlock) bits &= (uint64_t{1} << (text_.size() - block)) - 1;
    return bits;
  }

  const std::string_view text_;
  const __m128i delimiter_, quote_;
  size_t block_ = 0;
  uint64_t bits_ = 0;
};

}  // namespace

CutRecords::CutRecords(std::string_view text, const TableFormat& format, int64_t num_columns,
                       std::vector<BadRecord>* bad)
    : text_(text), num_columns_(num_columns) {
  // Most tables have fields of a few bytes.
  begins_.reserve(text.size() / (4 * static_cast<size_t>(num_columns) + 1) + 1);
  ends_.reserve(text.size() / 4 + static_cast<size_t>(num_columns));
  Marks marks(text, format);
  size_t record = 0, field = 0;
  std::optional<BadRecord> mistake;
  const auto found = [&](BadRecord::Kind kind) {
    if (mistake) return;
    const auto fields = static_cast<int64_t>(ends_.size()) - num_records() * num_columns_;
    mistake = BadRecord{kind, record, 0, fields + 1};
  };
  const auto end_field = [&](size_t end) {
    if (end - field > kLongestField) found(BadRecord::Kind::kLongField);
    ends_.push_back(static_cast<uint32_t>(end));
    field = end + 1;
  };
  const auto end_record = [&](size_t line_end, size_t next) {
    const size_t end = line_end > field && text[line_end - 1] == '\r' ? line_end - 1 : line_end;
    if (end > record) {
      end_field(end);
      const size_t before = static_cast<size_t>(num_records() * num_columns_);
      const auto fields = static_cast<int64_t>(ends_.size() - before);
      if (!mistake && fields != num_columns_) {
        mistake = BadRecord{BadRecord::Kind::kFields, record, 0, fields};
      }
      if (mistake) {
        mistake->end = end;
        bad->push_back(*mistake);
        mistake.reset();
        ends_.resize(before);
      } else {
        begins_.push_back(static_cast<uint32_t>(record));
      }
    }
    record = field = next;
  };
  while (true) {
    const size_t at = marks.Next();
    if (at == text.size()) break;
    const char c = text[at];
    if (c == format.delimiter) {
      end_field(at);
    } else if (c == '\n') {
      end_record(at, at + 1);
    } else if (c == '\0') {
      found(BadRecord::Kind::kNul);
    } else if (at == field) {
      size_t close = text.find('"', at + 1);
      while (close < text.size() && text.substr(close, 2) == "\"\"") close = text.find('"', close + 2);
      if (close == std::string_view::npos) {
        found(BadRecord::Kind::kOpenQuote);
        end_record(text.size(), text.size());
        return;
      }
      const std::string_view rest = text.substr(close + 1, 2);
      if (!rest.empty() && rest[0] != format.delimiter && rest[0] != '\n' && rest != "\r\n" &&
          !(rest == "\r" && close + 2 == text.size())) {
        found(BadRecord::Kind::kBehindQuote);
      }
      if (text.substr(at, close - at).find('\0') != std::string_view::npos) {
        found(BadRecord::Kind::kNul);
      }
      marks.Seek(close + 1);
    }
  }
  if (record < text.size()) end_record(text.size(), text.size());
}

}  // namespace tenon
