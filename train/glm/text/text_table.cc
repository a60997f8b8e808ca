// SPDX-License-Identifier: Apache-2.0
#include "train/glm/text/text_table.h"

#include <algorithm>
#include <cctype>

#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

bool IsNumberText(const std::string& text) {
  const size_t digit = text.starts_with('-') ? 1 : 0;
  return digit < text.size() && std::isdigit(static_cast<unsigned char>(text[digit])) != 0;
}

/// The place of the decimal point, or where it would be.
size_t PointOf(const std::string& text) { return std::min(text.find_first_of(".e"), text.size()); }

std::string Blanks(int64_t count) {
  return std::string(static_cast<size_t>(std::max<int64_t>(count, 0)), ' ');
}

}  // namespace

void TextTable::RemoveColumn(size_t column) {
  columns_.erase(columns_.begin() + static_cast<int64_t>(column));
  for (Row& row : rows_) {
    row.cells.erase(row.cells.begin() + static_cast<int64_t>(column));
    if (row.note_column > static_cast<int64_t>(column)) --row.note_column;
  }
}

TextTable::Extent TextTable::ExtentOf(size_t column) const {
  Extent extent;
  extent.width = WidthOf(columns_[column].header);
  for (const Row& row : rows_) {
    const std::string& cell = row.cells[column];
    if (columns_[column].align == Align::kPoint && IsNumberText(cell)) {
      const auto before = static_cast<int64_t>(PointOf(cell));
      extent.before = std::max(extent.before, before);
      extent.behind = std::max(extent.behind, static_cast<int64_t>(cell.size()) - before);
    } else {
      extent.width = std::max(extent.width, WidthOf(cell));
    }
  }
  extent.width = std::max(extent.width, extent.before + extent.behind);
  return extent;
}

int64_t TextTable::Width(int64_t gap) const {
  int64_t width = gap * static_cast<int64_t>(columns_.size() - 1);
  for (size_t i = 0; i < columns_.size(); ++i) width += ExtentOf(i).width;
  return width;
}

std::vector<std::string> TextTable::Lines(int64_t gap) const {
  std::vector<Extent> extents;
  for (size_t i = 0; i < columns_.size(); ++i) extents.push_back(ExtentOf(i));
  std::vector<std::string> lines(1 + rows_.size());
  int64_t begin = 0;
  const auto put = [&begin](std::string* line, int64_t indent, const std::string& text) {
    if (text.empty()) return;
    // A note covers the cells that it reaches.
    if (WidthOf(*line) > begin + indent) return;
    *line += Blanks(begin + indent - WidthOf(*line)) + text;
  };
  for (size_t i = 0; i < columns_.size(); ++i) {
    const bool is_left = columns_[i].align == Align::kLeft;
    const auto right = [&](const std::string& text) { return extents[i].width - WidthOf(text); };
    put(&lines[0], is_left ? 0 : right(columns_[i].header), columns_[i].header);
    for (size_t r = 0; r < rows_.size(); ++r) {
      const std::string& cell = rows_[r].cells[i];
      int64_t indent = is_left ? 0 : right(cell);
      if (columns_[i].align == Align::kPoint && IsNumberText(cell)) {
        indent = extents[i].width - extents[i].behind - static_cast<int64_t>(PointOf(cell));
      }
      const bool has_note = rows_[r].note_column == static_cast<int64_t>(i);
      put(&lines[r + 1], has_note ? 0 : indent, has_note ? rows_[r].note : cell);
    }
    begin += extents[i].width + gap;
  }
  return lines;
}

}  // namespace tenon
