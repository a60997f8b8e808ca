// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "data/table/table_format.h"

// Where the records of a text begin, when the text is looked at in parts, each by itself: the end
// of a line ends a record unless it is within quotes, and whether it is depends on all that comes
// before. Each part is scanned once for every way in which it may begin.

namespace tenon {

/// The kind of text before a place.
enum class TextState : uint8_t {
  kFieldStart,     // a delimiter, the end of a record, or nothing
  kPlain,          // a field without quotes, or the rest of one behind its closing quote
  kQuoted,         // a field in quotes
  kQuoteInQuoted,  // a quote in such a field: its end, or the first of two
};
inline constexpr int kTextStates = 4;

/// The state after `c`.
TextState NextState(TextState state, char c, const TableFormat& format);

/// A part of a text, for one state before it.
struct ScannedPart {
  TextState end = TextState::kFieldStart;
  /// How many bytes stand before the first record that begins in the part; -1 when none does. A
  /// record begins behind the end of another one, also where the part ends.
  int64_t first_record = -1;
};

/// A part of a text, whichever way it begins.
struct PartScan {
  int64_t lines = 0;  // ends of lines, within quotes too
  /// By the state before the part; nothing for those that the byte before it excludes.
  std::array<std::optional<ScannedPart>, kTextStates> from;
};

/// Scans a part. `before`: the byte in front of it; nothing at the beginning of the text, which
/// begins a record.
PartScan ScanPart(std::string_view part, std::optional<char> before, const TableFormat& format);

}  // namespace tenon
