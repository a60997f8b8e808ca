// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/table/merge_levels.h"
#include "data/table/table_header.h"
#include "data/table/unit_reader.h"
#include "train/glm/formula/formula.h"

namespace tenon {

/// The columns of a table that a formula needs, as numbers or texts, whichever their values are, or
/// as texts in any case.
class FormulaColumns {
 public:
  /// InvalidArgument for a column that the header has not.
  static StatusOr<FormulaColumns> Of(const Formula& formula, const std::string& weights,
                                     const TableHeader& header);
  const std::vector<WantedColumn>& columns() const { return columns_; }
  /// The place of a column in `columns`. REQUIRES: it is one of the formula's.
  int64_t AsItIs(const std::string& name) const { return as_it_is_.at(name); }
  int64_t AsText(const std::string& name) const { return as_text_.at(name); }
  const std::string& NameOf(int64_t column) const { return names_[column]; }

 private:
  Status Add(const std::string& name, bool as_text, const TableHeader& header);

  std::vector<WantedColumn> columns_;
  std::vector<std::string> names_;
  std::map<std::string, int64_t> as_it_is_, as_text_;
};

/// The kinds and levels that the columns of a formula have in a table.
struct ColumnKinds {
  std::vector<bool> is_text;              // by place in FormulaColumns
  std::map<int64_t, TableLevels> levels;  // of those of texts that the formula needs
};

}  // namespace tenon
