// SPDX-License-Identifier: Apache-2.0
#include "data/table/text_pieces.h"

#include <algorithm>

namespace tenon {
namespace {

/// The bytes that are read at first to find the end of a record that has begun.
constexpr size_t kMoreBytes = 64 << 10;

}  // namespace

TextState StateOutsideQuotes(std::optional<char> before, const TableFormat& format) {
  if (!before || *before == '\n' || *before == format.delimiter) return TextState::kFieldStart;
  return *before == '"' && format.quotes ? TextState::kQuoteInQuoted : TextState::kPlain;
}

TextPieces::TextPieces(std::unique_ptr<ByteSource> source, std::optional<char> before,
                       std::optional<TextState> state, const TableFormat& format)
    : source_(std::move(source)),
      format_(format),
      before_(before),
      state_(state.value_or(StateOutsideQuotes(before, format))) {}

Status TextPieces::Hold(size_t bytes) {
  const size_t held = buffer_.size() - begin_;
  if (ended_ || held >= bytes) return OkStatus();
  // One byte more than can come shows that the source has ended.
  const auto possible = static_cast<uint64_t>(std::max<int64_t>(source_->Bound(), 0)) + 1;
  const size_t wanted = std::min<uint64_t>(bytes - held, possible);
  // The rest of the last record is most likely found without moving the text to more memory.
  if (buffer_.empty()) buffer_.reserve(wanted + std::min<uint64_t>(kMoreBytes, possible));
  buffer_.resize(buffer_.size() + wanted);
  const StatusOr<size_t> found = source_->Read(wanted, buffer_.data() + buffer_.size() - wanted);
  buffer_.resize(buffer_.size() - wanted + (found.ok() ? *found : 0));
  if (!found.ok()) return found.status();
  ended_ = *found < wanted;
  return OkStatus();
}

Status TextPieces::PassOverMark() {
  TENON_RETURN_IF_ERROR(Hold(3));
  const std::string_view head(buffer_);
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) {
    return InvalidArgument("the text is in UTF-16, wanted UTF-8");
  }
  if (head.starts_with("\xef\xbb\xbf")) begin_ = offset_ = 3;
  return OkStatus();
}

StatusOr<size_t> TextPieces::FindEnd(size_t own, TextState* state) {
  size_t end = own;
  char before = buffer_[begin_ + own - 1];
  for (size_t more = kMoreBytes;; more *= 2) {
    if (*state == TextState::kFieldStart && before == '\n') return end;
    TENON_RETURN_IF_ERROR(Hold(end + more));
    const std::string_view text = std::string_view(buffer_).substr(begin_ + end);
    if (text.empty() || end - own >= kLongestRecord) return end;
    const PartScan scan = ScanPart(text, before, format_);
    const auto& way = scan.from[static_cast<int>(*state)];
    TENON_CHECK(way.has_value(), "a text in an impossible state");
    if (way->first_record >= 0) {
      *state = TextState::kFieldStart;
      return end + static_cast<size_t>(way->first_record);
    }
    end += text.size();
    *state = way->end;
    before = text.back();
  }
}

StatusOr<bool> TextPieces::Next(size_t bytes, TextPiece* piece) {
  buffer_.erase(0, begin_);
  begin_ = 0;
  if (offset_ == 0 && !before_) {
    TENON_RETURN_IF_ERROR(PassOverMark());
    bytes -= std::min(bytes, begin_);  // the mark is one of the bytes that are asked for
  }
  TENON_RETURN_IF_ERROR(Hold(bytes));
  const std::string_view own = std::string_view(buffer_).substr(begin_, bytes);
  if (own.empty()) return false;
  *piece = {};
  piece->scan = ScanPart(own, before_, format_);
  const std::optional<ScannedPart> way = piece->scan.from[static_cast<int>(state_)];
  if (!way)
    return DataLoss("the text is not what it was: a quote before the part has come or gone");
  const bool has_records =
      way->first_record >= 0 && way->first_record < static_cast<int64_t>(own.size());
  const size_t size = own.size();
  size_t end = size;
  TextState state = way->end;
  if (has_records) {
    TENON_ASSIGN_OR_RETURN(end, FindEnd(size, &state));
    const std::string_view text = std::string_view(buffer_).substr(begin_, end);
    const auto first = static_cast<size_t>(way->first_record);
    piece->records = text.substr(first);
    piece->begin = offset_ + way->first_record;
    piece->lines_before = lines_ + std::count(text.begin(), text.begin() + first, '\n');
    const std::string_view behind = text.substr(size);
    lines_ += std::count(behind.begin(), behind.end(), '\n');
  }
  lines_ += piece->scan.lines;
  before_ = buffer_[begin_ + end - 1];
  state_ = state;
  begin_ += end;
  offset_ += static_cast<int64_t>(end);
  return true;
}

}  // namespace tenon
