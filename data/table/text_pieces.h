// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "data/files/byte_stream.h"
#include "data/table/table_format.h"
#include "data/table/text_scan.h"

namespace tenon {

/// A piece of a text: some of its bytes, and the records that begin in them.
struct TextPiece {
  /// The records, whole, which may end behind the bytes; empty when none begins in them.
  std::string_view records;
  int64_t begin = 0;         // of `records`, in bytes from where the source began
  int64_t lines_before = 0;  // ends of lines from where the source began to `records`
  PartScan scan;             // of the bytes
};

/// Cuts what a source gives into pieces. Used by one thread at a time.
class TextPieces {
 public:
  /// A record that is longer is given up at this length: most likely a quote is not closed.
  static constexpr size_t kLongestRecord = size_t{64} << 20;

  /// The text from a place of a file on; `before` is the byte in front of the place, nothing at the
  /// beginning of the file, where a mark of UTF-8 is passed over. `state` says how the text begins
  /// there; without it, it is taken to begin outside of quotes. `format` must outlive this.
  TextPieces(std::unique_ptr<ByteSource> source, std::optional<char> before,
             std::optional<TextState> state, const TableFormat& format);

  /// Gives the next piece, of `bytes` bytes, which are more than a mark of UTF-8 has, or fewer at
  /// the end, in the place of the one before; false at the end. InvalidArgument for text in UTF-16;
  /// DataLoss where the text cannot be in the state that was given.
  StatusOr<bool> Next(size_t bytes, TextPiece* piece);
  /// The state in which the next piece is taken to begin.
  TextState state() const { return state_; }

 private:
  /// Has the buffer hold `bytes` bytes behind `begin_`, or all that is left.
  Status Hold(size_t bytes);
  Status PassOverMark();
  /// Finds the end of the record that goes on behind the first `own` bytes, and the state there.
  StatusOr<size_t> FindEnd(size_t own, TextState* state);

  const std::unique_ptr<ByteSource> source_;
  const TableFormat& format_;
  std::optional<char> before_;
  TextState state_;
  std::string buffer_;
  size_t begin_ = 0;    // of the next piece in the buffer
  int64_t offset_ = 0;  // of the next piece, from where the source began
  int64_t lines_ = 0;   // before the next piece
  bool ended_ = false;  // the source
};

/// The likeliest state behind a byte, which nothing stands for at the beginning of a text: outside
/// of quotes.
TextState StateOutsideQuotes(std::optional<char> before, const TableFormat& format);

}  // namespace tenon
