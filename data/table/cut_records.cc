// SPDX-License-Identifier: Apache-2.0
#include "data/table/cut_records.h"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/status.h"

namespace tenon {
namespace {

constexpr size_t kMarkedBytes = 64;

/// Bytes of a block of text, a bit for each.
struct BlockMarks {
  uint64_t delimiters = 0, line_ends = 0;
  uint64_t others = 0;  // quotes and bytes 0

  /// The marks from byte `first` on.
  BlockMarks From(size_t first) const {
    const uint64_t mask = ~uint64_t{0} << first;
    return {delimiters & mask, line_ends & mask, others & mask};
  }
};

uint64_t MaskOf(__m128i equal, int part) {
  return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(equal))} << (16 * part);
}

BlockMarks MarksOf(std::string_view text, size_t block, const TableFormat& format) {
  const char* data = text.data() + block;
  const size_t size = std::min(kMarkedBytes, text.size() - block);
  char last[kMarkedBytes] = {};
  if (size < kMarkedBytes) data = static_cast<const char*>(std::memcpy(last, data, size));
  const __m128i delimiter = _mm_set1_epi8(format.delimiter), line_end = _mm_set1_epi8('\n');
  const __m128i quote = _mm_set1_epi8(format.quotes ? '"' : '\0');
  BlockMarks marks;
  for (int i = 0; i < 4; ++i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i));
    marks.delimiters |= MaskOf(_mm_cmpeq_epi8(bytes, delimiter), i);
    marks.line_ends |= MaskOf(_mm_cmpeq_epi8(bytes, line_end), i);
    const __m128i nul = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());
    marks.others |= MaskOf(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), nul), i);
  }
  // The zeros that fill up the last block are not in the text.
  if (size < kMarkedBytes) marks.others &= (uint64_t{1} << size) - 1;
  return marks;
}

/// Behind the end of the field in quotes that begins at `open`; npos when it does not end.
size_t EndOfQuotes(std::string_view text, size_t open) {
  size_t close = text.find('"', open + 1);
  while (close < text.size() && text.substr(close, 2) == "\"\"") close = text.find('"', close + 2);
  return close == std::string_view::npos ? close : close + 1;
}

}  // namespace

RecordCutter::RecordCutter(std::string_view text, const TableFormat& format, int64_t num_columns)
    : text_(text), format_(format), num_columns_(num_columns) {
  TENON_CHECK(text.size() < UINT32_MAX && num_columns >= 1, text.size(), " bytes of text with ",
              num_columns, " columns cannot be cut at once");
}

bool RecordCutter::Next(size_t bytes, std::vector<BadRecord>* bad) {
  begins_.clear();
  num_ends_ = 0;
  const size_t stop = record_ + std::min(bytes, text_.size() - record_);
  if (record_ == text_.size()) return false;
  size_t at = record_;
  while (record_ < stop) {
    if (at >= text_.size()) {
      EndRecord(text_.size(), text_.size(), bad);
      break;
    }
    const size_t block = at / kMarkedBytes * kMarkedBytes;
    if (ends_.size() < num_ends_ + kMarkedBytes + 1)
      ends_.resize(2 * ends_.size() + 2 * kMarkedBytes);
    at = CutBlock(block, at, stop, bad);
  }
  return true;
}

size_t RecordCutter::CutBlock(size_t block, size_t at, size_t stop, std::vector<BadRecord>* bad) {
  const BlockMarks marks = MarksOf(text_, block, format_).From(at - block);
  uint64_t bits = marks.delimiters | marks.line_ends | marks.others;
  size_t field = field_, num_ends = num_ends_;
  for (; bits != 0; bits &= bits - 1) {
    const int bit = std::countr_zero(bits);
    const size_t mark = block + bit;
    if (marks.delimiters >> bit & 1) {
      ends_[num_ends++] = static_cast<uint32_t>(mark);
      field = mark + 1;
      continue;
    }
    field_ = field;
    num_ends_ = num_ends;
    if (marks.line_ends >> bit & 1) {
      EndRecord(mark, mark + 1, bad);
      if (record_ >= stop) return record_;
    } else if (text_[mark] == '\0') {
      Found(BadRecord::Kind::kNul);
    } else if (mark == field) {
      const size_t end = EndOfQuotes(text_, mark);
      if (end != std::string_view::npos) {
        CheckQuoted(mark, end);
        return end;
      }
      Found(BadRecord::Kind::kOpenQuote);
      return text_.size();
    }
    field = field_;
    num_ends = num_ends_;
  }
  field_ = field;
  num_ends_ = num_ends;
  return block + kMarkedBytes;
}

void RecordCutter::Found(BadRecord::Kind kind) {
  if (mistake_) return;
  const size_t fields = num_ends_ - begins_.size() * static_cast<size_t>(num_columns_);
  mistake_ = BadRecord{kind, record_, 0, static_cast<int64_t>(fields) + 1};
}

void RecordCutter::CheckQuoted(size_t open, size_t end) {
  const std::string_view rest = text_.substr(end, 2);
  const bool ends = rest.empty() || rest[0] == format_.delimiter || rest[0] == '\n' ||
                    rest == "\r\n" || (rest == "\r" && end + 1 == text_.size());
  if (!ends) Found(BadRecord::Kind::kBehindQuote);
  if (text_.substr(open, end - open).find('\0') != std::string_view::npos) {
    Found(BadRecord::Kind::kNul);
  }
}

void RecordCutter::EndRecord(size_t line_end, size_t next, std::vector<BadRecord>* bad) {
  const bool has_return = line_end > field_ && text_[line_end - 1] == '\r';
  const size_t end = has_return ? line_end - 1 : line_end;
  if (end > record_) {
    ends_[num_ends_++] = static_cast<uint32_t>(end);
    const size_t before = begins_.size() * static_cast<size_t>(num_columns_);
    if (end - record_ > kLongestField) CheckLengths(before);
    const auto fields = static_cast<int64_t>(num_ends_ - before);
    if (!mistake_ && fields != num_columns_) {
      mistake_ = BadRecord{BadRecord::Kind::kFields, record_, 0, fields};
    }
    if (mistake_) {
      mistake_->end = end;
      bad->push_back(*mistake_);
      mistake_.reset();
      num_ends_ = before;
    } else {
      begins_.push_back(static_cast<uint32_t>(record_));
    }
  }
  record_ = field_ = next;
}

void RecordCutter::CheckLengths(size_t first) {
  size_t begin = record_;
  for (size_t f = first; f < num_ends_ && !mistake_; ++f) {
    if (ends_[f] - begin > kLongestField) {
      mistake_ =
          BadRecord{BadRecord::Kind::kLongField, record_, 0, static_cast<int64_t>(f - first) + 1};
    }
    begin = ends_[f] + 1;
  }
}

}  // namespace tenon
