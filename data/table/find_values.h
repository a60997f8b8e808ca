// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/table/table_format.h"

// Values whose places a user is told. The texts are as RecordCutter wants them.

namespace tenon {

/// A value and its record, as it stands in the text.
struct FoundText {
  std::string_view record;
  std::string text;
};

/// The first values of the column at `place` that are neither numbers nor missing, `most` at most.
std::vector<FoundText> FindTexts(std::string_view text, const TableFormat& format,
                                 int64_t num_columns, int64_t place, size_t most);

/// Finds the value of the column at `place` in the row `*row`; false, with the number of rows taken
/// off, when the text has fewer. Records that are not as the others are no rows.
bool FindRow(std::string_view text, const TableFormat& format, int64_t num_columns, int64_t place,
             int64_t* row, FoundText* found);

}  // namespace tenon
