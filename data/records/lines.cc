// SPDX-License-Identifier: Apache-2.0
#include "data/records/lines.h"

#include <cstring>
#include <utility>

#include "data/records/text_column.h"

namespace tenon {
namespace {

constexpr size_t kLineBytes = 1 << 18;

/// The lines of one file.
class NamedLines {
 public:
  NamedLines(std::unique_ptr<ByteSource> bytes, std::string name)
      : lines_(std::move(bytes)), name_(std::move(name)) {}
  StatusOr<bool> Next(TString* text) {
    std::string_view line;
    const StatusOr<bool> found = lines_.Next(&line);
    if (!found.ok()) {
      return Annotate(found.status(), StrCat("'", name_, "' after line ", number_));
    }
    ++number_;
    text->assign(line);
    return found;
  }

 private:
  LineReader lines_;
  const std::string name_;
  int64_t number_ = 0;
};

}  // namespace

StatusOr<bool> LineReader::Next(std::string_view* line) {
  size_t looked_at = begin_;
  while (true) {
    const void* const end =
        std::memchr(buffer_.data() + looked_at, '\n', buffer_.size() - looked_at);
    const size_t size = end != nullptr ? static_cast<const char*>(end) - buffer_.data() - begin_
                                       : buffer_.size() - begin_;
    if (end != nullptr || (ended_ && size > 0)) {
      *line = std::string_view(buffer_).substr(begin_, size);
      begin_ += size + (end != nullptr ? 1 : 0);
      if (line->ends_with('\r')) line->remove_suffix(1);
      return true;
    }
    if (ended_) return false;
    buffer_.erase(0, begin_);
    begin_ = 0;
    looked_at = buffer_.size();
    buffer_.resize(looked_at + kLineBytes);
    const StatusOr<size_t> found = bytes_->Read(kLineBytes, buffer_.data() + looked_at);
    buffer_.resize(looked_at + (found.ok() ? *found : 0));
    TENON_RETURN_IF_ERROR(found.status());
    ended_ = *found < kLineBytes;
  }
}

BatchSourcePtr ReadLines(std::vector<std::string> paths, const FileContext& context) {
  return std::make_unique<TextColumn<NamedLines>>(
      "line", std::move(paths),
      [context](const std::string& path) -> StatusOr<std::unique_ptr<NamedLines>> {
        TENON_ASSIGN_OR_RETURN(auto bytes, OpenTextSource(path, context));
        return std::make_unique<NamedLines>(std::move(bytes), path);
      });
}

}  // namespace tenon
