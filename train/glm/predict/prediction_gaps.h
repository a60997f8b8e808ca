// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/hash_map.h"

namespace tenon {

/// The reasons why rows of a table have no prediction, counted by column. Used by one thread at a
/// time.
class PredictionGaps {
 public:
  enum class Kind : uint8_t {
    kUnseen,     // a level that the model does not know
    kSeparated,  // a level that it left out
    kMissing,    // a value is missing
    kOutside,    // a number is outside of the intervals of cut()
    kInfinite,   // a number is not finite, as log(0) is
  };
  /// The distinct levels of a column that are told apart; further ones are not counted.
  static constexpr size_t kMostLevels = size_t{1} << 20;

  void AddRow() { ++num_rows_; }
  /// Counts a value of a row, whose record begins `line` lines behind where counting began.
  void Add(Kind kind, std::string_view column, std::string_view text, int64_t line);
  /// Counts what comes after it, in a part of a file that begins with the line `first_line`.
  void Add(const PredictionGaps& later, std::string_view file, int64_t first_line);

  int64_t num_rows() const { return num_rows_; }
  /// "74 unseen levels of flight (first: 8, line 11,204); temp is missing in 12 rows"; empty when
  /// there is nothing. `with_files` says the file of a line.
  std::string Text(bool with_files) const;

 private:
  struct Reason {
    int64_t rows = 0;
    StringSet levels;
    std::string first, file;  // text, and where it is
    int64_t line = 0;
  };

  int64_t num_rows_ = 0;
  std::map<Kind, std::map<std::string, Reason, std::less<>>> reasons_;
};

}  // namespace tenon
