// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "data/table/table_files.h"
#include "data/table/unit_report.h"

namespace tenon {

/// Follows the state of the text from unit to unit of each file. Used by one thread at a time.
class StateChain {
 public:
  /// Both must outlive this.
  StateChain(const std::vector<TableFile>& files, const std::vector<TableUnit>& units)
      : files_(files), units_(units) {}

  /// Goes on to the next unit, `unit`. Gives the state in which it begins, if it was read as if it
  /// began in another way, with other records. DataLoss where it cannot go on from the one before:
  /// the file was changed meanwhile.
  StatusOr<std::optional<TextState>> Follow(size_t unit, const UnitReport& report);
  /// The line with which the unit begins that was followed last.
  int64_t first_line() const { return first_line_; }

 private:
  const std::vector<TableFile>& files_;
  const std::vector<TableUnit>& units_;
  TextState state_ = TextState::kFieldStart;
  int64_t line_ = 1, first_line_ = 1;
};

}  // namespace tenon
