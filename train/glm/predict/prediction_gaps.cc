// SPDX-License-Identifier: Apache-2.0
#include "train/glm/predict/prediction_gaps.h"

#include <vector>

#include "core/base/strings.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

std::string RowsOf(int64_t rows) { return StrCat(CountText(rows), rows == 1 ? " row" : " rows"); }

}  // namespace

void PredictionGaps::Add(Kind kind, std::string_view column, std::string_view text, int64_t line) {
  auto& by_column = reasons_[kind];
  auto found = by_column.find(column);
  if (found == by_column.end()) {
    found = by_column.emplace(column, Reason{}).first;
    found->second.first = text;
    found->second.line = line;
  }
  Reason& reason = found->second;
  ++reason.rows;
  const bool has_levels = kind == Kind::kUnseen || kind == Kind::kSeparated;
  if (!has_levels || reason.levels.contains(text) || reason.levels.size() == kMostLevels) return;
  reason.levels.emplace(text);
}

void PredictionGaps::Add(const PredictionGaps& later, std::string_view file, int64_t first_line) {
  num_rows_ += later.num_rows_;
  for (const auto& [kind, by_column] : later.reasons_) {
    for (const auto& [column, more] : by_column) {
      Reason& reason = reasons_[kind][column];
      if (reason.rows == 0) {
        reason.first = more.first;
        reason.file = file;
        reason.line = first_line + more.line;
      }
      reason.rows += more.rows;
      for (const std::string& level : more.levels) {
        if (reason.levels.size() < kMostLevels) reason.levels.insert(level);
      }
    }
  }
}

std::string PredictionGaps::Text(bool with_files) const {
  std::vector<std::string> parts;
  for (const auto& [kind, by_column] : reasons_) {
    for (const auto& [column, reason] : by_column) {
      const std::string place = with_files && !reason.file.empty()
                                    ? StrCat(reason.file, ":", CountText(reason.line))
                                    : StrCat("line ", CountText(reason.line));
      const auto count = static_cast<int64_t>(reason.levels.size());
      const std::string levels =
          StrCat(reason.levels.size() == kMostLevels ? "more than " : "", CountText(count));
      switch (kind) {
        case Kind::kUnseen:
          parts.push_back(StrCat(levels, count == 1 ? " unseen level of " : " unseen levels of ",
                                 column, count == 1 ? " (" : " (first: ", ShownText(reason.first),
                                 ", ", place, ")"));
          break;
        case Kind::kSeparated:
          parts.push_back(
              StrCat(RowsOf(reason.rows), " with ", levels, " separated ",
                     count == 1 ? "level" : "levels", " of ", column, ", which the fit left out",
                     count == 1 ? " (" : " (first: ", ShownText(reason.first), ", ", place, ")"));
          break;
        case Kind::kMissing:
          parts.push_back(StrCat(column, " is missing in ", RowsOf(reason.rows)));
          break;
        case Kind::kOutside:
          parts.push_back(
              StrCat(column, " has no interval in ", RowsOf(reason.rows), " (first: ", place, ")"));
          break;
        case Kind::kInfinite:
          parts.push_back(
              StrCat(column, " is not finite in ", RowsOf(reason.rows), " (first: ", place, ")"));
          break;
      }
    }
  }
  return Join(parts, "; ");
}

}  // namespace tenon
