// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// A table for a terminal, whose columns are as wide as what is in them. Numbers stand with their
/// decimal points below each other.
class TextTable {
 public:
  enum class Align { kLeft, kRight, kPoint };
  struct Column {
    std::string header;
    Align align = Align::kPoint;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A cell for each column. Texts in a column of numbers are at its right.
  void AddRow(std::vector<std::string> cells) { rows_.push_back({std::move(cells), -1, ""}); }
  /// A note begins in the column `note_column`, whose cell and those behind it are empty as far as
  /// it goes; it makes no column wider.
  void AddRowWithNote(std::vector<std::string> cells, int64_t note_column, std::string note) {
    rows_.push_back({std::move(cells), note_column, std::move(note)});
  }
  /// Takes a column away, from its header to its last cell.
  void RemoveColumn(size_t column);

  const std::vector<Column>& columns() const { return columns_; }
  bool empty() const { return rows_.empty(); }
  /// The width of all columns with `gap` blanks between them.
  int64_t Width(int64_t gap) const;
  /// The header and the rows, without blanks at their ends.
  std::vector<std::string> Lines(int64_t gap) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    int64_t note_column;
    std::string note;
  };
  /// How far the numbers of a column go to both sides of their points, and its width.
  struct Extent {
    int64_t before = 0, behind = 0, width = 0;
  };

  Extent ExtentOf(size_t column) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace tenon
