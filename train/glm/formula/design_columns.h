// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/glm/formula/formula.h"

namespace tenon {

/// The kind that a variable of a formula has in the data, and its levels.
struct DesignVariable {
  bool is_factor = false;
  std::vector<std::string> levels;  // of a factor, in their order
  int64_t reference = 0;            // the level without a coefficient of its own
};

/// A column of the design matrix, which has a coefficient.
struct DesignColumn {
  int64_t term;  // in the formula; -1 for the intercept
  /// The level of each variable of the term; -1 for numbers.
  std::vector<int64_t> levels;
};

/// Columns that stand one after the other.
struct ColumnRange {
  int64_t begin = 0, count = 0;
};

/// The columns of the design matrix, in R's order: the intercept, then term by term, where the
/// level of a term's first variable changes fastest. A factor has a column for every level but its
/// reference (treatment contrasts) where the term without it is a part of a term before, the
/// intercept included, and else for every level (Chambers and Hastie 1992, "Statistical Models in
/// S", 2.3.3). Without an intercept the first factor of the first term with one has all levels.
/// `variables` are those of the formula.
std::vector<DesignColumn> ListDesignColumns(const Formula& formula,
                                            const std::vector<DesignVariable>& variables);

/// The columns of the term that is one factor and has the most of them; none without one.
ColumnRange LargestFactor(const std::vector<DesignColumn>& columns);

/// The name of a column as R prints it: "carrierUA:distance".
std::string NameOfColumn(const Formula& formula, const std::vector<DesignVariable>& variables,
                         const DesignColumn& column);

}  // namespace tenon
