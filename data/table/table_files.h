// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/status.h"
#include "data/files/file.h"
#include "data/table/table_format.h"
#include "data/table/text_pieces.h"

// A table in one file or more, cut into units that are read apart from each other.

namespace tenon {

/// A file of a table, as it was when the table was looked at.
struct TableFile {
  std::string path;  // "-": what came through the standard input of this process
  int64_t size = 0;  // bytes
  Clock::WallTime modified_at;
  bool compressed = false;  // with gzip or zstd
};

/// The records that begin in a range of bytes of a file.
struct TableUnit {
  int64_t file;        // in the list of files
  int64_t begin, end;  // the whole file, when it is compressed
};

/// The files that paths and patterns (MatchFiles) name, in the order of the patterns and then of
/// their names. A path of a file that is there is no pattern. NotFound, naming the pattern, when
/// there are none; InvalidArgument for a file that comes twice. "-" alone is the standard input,
/// which is read to its end, where all files may be reached.
StatusOr<std::vector<TableFile>> FindTableFiles(const std::vector<std::string>& patterns,
                                                const FileContext& context = {});

/// The name of the file in messages, in quotes.
std::string ShownFile(const TableFile& file);

/// Units of `bytes`, or a little more; a compressed file is one. REQUIRES: bytes > 0.
std::vector<TableUnit> CutIntoUnits(const std::vector<TableFile>& files, int64_t bytes);

/// Opens a unit of `file`. `state` says how it begins, when that is known; without it, it is taken
/// to begin outside of quotes. FailedPrecondition, naming the file, when its size or its time is
/// another one than it was. `format` must outlive the pieces.
StatusOr<std::unique_ptr<TextPieces>> OpenUnit(const TableFile& file, const TableUnit& unit,
                                               std::optional<TextState> state,
                                               const TableFormat& format,
                                               const FileContext& context = {});

}  // namespace tenon
