// SPDX-License-Identifier: Apache-2.0
#include "data/csv/csv_blocks.h"

#include <cstring>

namespace tenon {
namespace {

constexpr size_t kBlock = 1 << 20;
/// A record that is longer is taken for a quote that somebody forgot to close.
constexpr size_t kLongestRecord = 256 << 20;

}  // namespace

Status CsvBlocks::CheckBeginning() {
  begun_ = true;
  const std::string_view head(buffer_);
  if (head.starts_with("\xef\xbb\xbf")) begin_ = looked_at_ = 3;  // the mark of UTF-8
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) {
    return InvalidArgument("'", name_, "' is text in UTF-16, wanted UTF-8");
  }
  return OkStatus();
}

Status CsvBlocks::Read() {
  if (buffer_.size() - begin_ > kLongestRecord) {
    return InvalidArgument("'", name_, "', line ", line_, ": found a record of more than ",
                           kLongestRecord >> 20, " MiB",
                           within_quotes_ ? "; its last field in quotes does not end" : "");
  }
  buffer_.erase(0, begin_);
  looked_at_ -= begin_;
  begin_ = 0;
  const size_t held = buffer_.size();
  // A long record is read in ever longer pieces.
  const size_t wanted = std::max(kBlock, held);
  buffer_.resize(held + wanted);
  const StatusOr<size_t> found = bytes_->Read(wanted, buffer_.data() + held);
  buffer_.resize(held + (found.ok() ? *found : 0));
  if (!found.ok()) {
    return Annotate(found.status(), StrCat("'", name_, "' after line ", line_ + inner_ - 1));
  }
  ended_ = *found < wanted;
  return begun_ ? OkStatus() : CheckBeginning();
}

/// Gives the next record of the buffer; false when its end is not there yet.
bool CsvBlocks::TakeRecord(CsvRecord* record) {
  while (looked_at_ < buffer_.size() || (ended_ && begin_ < buffer_.size())) {
    const char* const data = buffer_.data();
    const auto* const end =
        static_cast<const char*>(std::memchr(data + looked_at_, '\n', buffer_.size() - looked_at_));
    if (end == nullptr && !ended_) return false;
    size_t stop = end != nullptr ? static_cast<size_t>(end - data) : buffer_.size();
    const size_t next = end != nullptr ? stop + 1 : stop;
    if (stop > looked_at_ && data[stop - 1] == '\r') --stop;
    ++inner_;
    within_quotes_ =
        format_.EndsWithinQuotes({data + looked_at_, stop - looked_at_}, within_quotes_);
    looked_at_ = next;
    if (within_quotes_ && next < buffer_.size()) continue;
    if (within_quotes_ && !ended_) return false;
    *record = {{data + begin_, stop - begin_}, line_};
    begin_ = next;
    line_ += inner_;
    inner_ = 0;
    within_quotes_ = false;
    if (!record->text.empty()) return true;
  }
  return false;
}

Status CsvBlocks::Next(size_t most, std::vector<CsvRecord>* records) {
  records->clear();
  CsvRecord record;
  while (true) {
    while (records->size() < most && TakeRecord(&record)) records->push_back(record);
    if (!records->empty() || (ended_ && begin_ == buffer_.size())) return OkStatus();
    TENON_RETURN_IF_ERROR(Read());
  }
}

}  // namespace tenon
