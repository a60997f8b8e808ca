// SPDX-License-Identifier: Apache-2.0
#include "data/table/state_chain.h"

namespace tenon {
namespace {

/// Whether a unit has the same records in both ways.
bool IsSame(const ScannedPart& a, const ScannedPart& b) {
  return a.first_record == b.first_record && (a.first_record < 0 || a.end == b.end);
}

}  // namespace

StatusOr<std::optional<TextState>> StateChain::Follow(size_t unit, const UnitReport& report) {
  const TableUnit& here = units_[unit];
  if (unit == 0 || units_[unit - 1].file != here.file) {
    state_ = TextState::kFieldStart;
    line_ = 1;
  }
  first_line_ = line_;
  if (files_[here.file].compressed) return std::nullopt;
  const auto& right = report.scan.from[static_cast<int>(state_)];
  const auto& taken = report.scan.from[static_cast<int>(report.began)];
  if (!right || !taken) {
    return DataLoss("the file '", files_[here.file].path,
                    "' was changed while the table was read: the part from byte ", here.begin,
                    " on does not go on from the part before");
  }
  line_ += report.scan.lines;
  const TextState begins = state_;
  state_ = right->end;
  if (IsSame(*right, *taken)) return std::nullopt;
  return begins;
}

}  // namespace tenon
