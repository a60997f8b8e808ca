// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/table/find_values.h"
#include "data/table/table_files.h"
#include "data/table/table_header.h"
#include "data/table/table_part.h"
#include "data/table/text_pieces.h"
#include "data/table/unit_report.h"

namespace tenon {

/// How a table is read, and what of it.
struct TableSchema {
  TableFormat format;
  TableHeader header;
  std::vector<WantedColumn> columns;
};

/// Reads a unit part by part: a compressed file is long. Used by one thread at a time.
class UnitReader {
 public:
  /// The bytes of text in a part, about.
  static constexpr int64_t kPartBytes = 1 << 20;

  /// Opens a unit as OpenUnit does. `file` and `schema` must outlive this.
  static StatusOr<std::unique_ptr<UnitReader>> Open(const TableFile& file, const TableUnit& unit,
                                                    std::optional<TextState> state,
                                                    const TableSchema& schema,
                                                    const FileContext& context = {});

  /// Gives the next part; false at the end. `part` is new, or the one before. Errors name the file.
  StatusOr<bool> Next(TablePart* part);

  /// Has parts be of kCutBytes, so that their records are known: those of the last part, as they
  /// stand in the file, and the ends of lines from the beginning of the unit to one of them, which
  /// is asked for in ascending order.
  void KeepRecords() { part_bytes_ = kCutBytes; }
  const RecordCutter& records() const { return *records_; }
  int64_t LinesBefore(int64_t record);
  /// The first values of a column that are neither numbers nor missing, `most` at most: instead of
  /// the parts.
  StatusOr<std::vector<PlacedText>> FindTexts(int64_t column, size_t most);
  /// The value of a column in a row: instead of the parts. OutOfRange when there are fewer rows.
  StatusOr<PlacedText> FindRow(int64_t column, int64_t row);

  /// Has `rejected` be at most so many, in the place of RejectedRecord::kReported.
  void KeepRejected(size_t most) { most_rejected_ = most; }

  /// How the unit is taken to begin, before the first part is read.
  TextState state() const { return pieces_->state(); }
  /// How the records of the unit depend on how it begins; of a compressed one, of its last part.
  const PartScan& scan() const { return piece_.scan; }
  /// The records that were left out so far, the first of them.
  const std::vector<RejectedRecord>& rejected() const { return rejected_; }
  int64_t num_rejected() const { return num_rejected_; }

 private:
  UnitReader(const TableFile& file, const TableUnit& unit, const TableSchema& schema,
             std::unique_ptr<TextPieces> pieces)
      : file_(file),
        unit_(unit),
        schema_(schema),
        pieces_(std::move(pieces)),
        is_behind_header_(unit.begin > 0 || schema.header.record.empty()) {}
  /// Gives the records of the next part, without the header; false at the end.
  StatusOr<bool> NextRecords(std::string_view* records);
  StatusOr<bool> Read(TablePart* part);
  int64_t num_columns() const { return static_cast<int64_t>(schema_.header.names.size()); }
  PlacedText Placed(FoundText found) const;
  void Reject(std::string_view text, const std::vector<BadRecord>& bad);

  const TableFile& file_;
  const TableUnit unit_;
  const TableSchema& schema_;
  const std::unique_ptr<TextPieces> pieces_;
  TextPiece piece_;
  std::optional<RecordCutter> records_;  // of the piece
  size_t part_bytes_ = static_cast<size_t>(kPartBytes);
  size_t counted_ = 0;         // where in the records lines were counted to, and
  int64_t counted_lines_ = 0;  // how many there are before, in the piece
  bool begun_ = false;
  bool is_behind_header_;
  int64_t num_rejected_ = 0;
  size_t most_rejected_ = RejectedRecord::kReported;
  std::vector<RejectedRecord> rejected_;
};

}  // namespace tenon
