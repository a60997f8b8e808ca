// SPDX-License-Identifier: Apache-2.0
#include "data/table/text_scan.h"

#include <algorithm>
#include <cstring>

namespace tenon {
namespace {

/// The states that may stand before a part whose byte before it is known.
std::array<bool, kTextStates> PossibleStates(std::optional<char> before,
                                             const TableFormat& format) {
  if (!before) return {true, false, false, false};
  if (!format.quotes) {
    const bool starts = *before == '\n' || *before == format.delimiter;
    return {starts, !starts, false, false};
  }
  if (*before == '"') return {false, true, true, true};
  const bool starts = *before == '\n' || *before == format.delimiter;
  return {starts, !starts, true, false};
}

/// The scan of a part from several states at once. States that meet go on as one.
class PartScanner {
 public:
  PartScanner(std::string_view part, const TableFormat& format) : part_(part), format_(format) {}

  void Begin(TextState state, bool begins_record) {
    ways_[static_cast<int>(state)] = ScannedPart{state, begins_record ? 0 : -1};
  }

  void Scan() {
    size_t at = 0;
    while (at < part_.size()) {
      const size_t quote = format_.quotes ? NextQuote(at) : part_.size();
      // A jump costs more than a few steps.
      if (quote - at >= kJump) {
        Jump(at, quote);
        at = quote;
      }
      const size_t stop = std::min(part_.size(), at + kJump);
      for (; at < stop; ++at) Step(at);
    }
  }

  const std::optional<ScannedPart>& way(int state) const { return ways_[state]; }

 private:
  static constexpr size_t kJump = 32;

  /// The place of the first quote from `at` on; the size of the part when there is none.
  size_t NextQuote(size_t at) {
    if (!next_quote_ || *next_quote_ < at) {
      next_quote_ = std::min(part_.find('"', at), part_.size());
    }
    return *next_quote_;
  }

  void Step(size_t at) {
    for (std::optional<ScannedPart>& way : ways_) {
      if (!way) continue;
      const bool ends = part_[at] == '\n' && way->end != TextState::kQuoted;
      if (ends && way->first_record < 0) way->first_record = static_cast<int64_t>(at) + 1;
      way->end = NextState(way->end, part_[at], format_);
    }
  }

  /// Goes over the bytes [begin, end), which hold no quote and are not none.
  void Jump(size_t begin, size_t end) {
    const std::string_view text = part_.substr(begin, end - begin);
    const char last = text.back();
    const bool starts = last == '\n' || last == format_.delimiter;
    int64_t line = -2;  // behind the first end of a line; not looked for yet
    for (std::optional<ScannedPart>& way : ways_) {
      if (!way || way->end == TextState::kQuoted) continue;
      way->end = starts ? TextState::kFieldStart : TextState::kPlain;
      if (way->first_record >= 0) continue;
      if (line == -2) {
        const size_t found = text.find('\n');
        line = found == std::string_view::npos ? -1 : static_cast<int64_t>(begin + found) + 1;
      }
      way->first_record = line;
    }
  }

  const std::string_view part_;
  const TableFormat& format_;
  std::optional<size_t> next_quote_;  // that was found last
  std::array<std::optional<ScannedPart>, kTextStates> ways_;
};

}  // namespace

TextState NextState(TextState state, char c, const TableFormat& format) {
  if (state == TextState::kQuoted) {
    return c == '"' ? TextState::kQuoteInQuoted : TextState::kQuoted;
  }
  if (c == '\n' || c == format.delimiter) return TextState::kFieldStart;
  const bool opens = state == TextState::kFieldStart || state == TextState::kQuoteInQuoted;
  return c == '"' && format.quotes && opens ? TextState::kQuoted : TextState::kPlain;
}

PartScan ScanPart(std::string_view part, std::optional<char> before, const TableFormat& format) {
  PartScanner scanner(part, format);
  const std::array<bool, kTextStates> possible = PossibleStates(before, format);
  for (int s = 0; s < kTextStates; ++s) {
    const auto state = static_cast<TextState>(s);
    const bool begins_record = state == TextState::kFieldStart && (!before || *before == '\n');
    if (possible[s]) scanner.Begin(state, begins_record);
  }
  scanner.Scan();
  PartScan scan;
  scan.lines = std::count(part.begin(), part.end(), '\n');
  for (int s = 0; s < kTextStates; ++s) scan.from[s] = scanner.way(s);
  return scan;
}

}  // namespace tenon
