// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/table/table_format.h"
#include "data/table/table_header.h"
#include "ops/glm/glm_family.h"
#include "train/glm/formula/design_columns.h"
#include "train/glm/formula/formula.h"
#include "train/glm/formula/formula_columns.h"

namespace tenon {

/// A fitted model as far as predictions need it: its formula with the levels that factors have, and
/// its coefficients in the units of the data. A value; other tables than that of the fit have their
/// columns in any order, and more of them.
struct GlmEquation {
  std::string text;                  // of the formula
  std::vector<std::string> columns;  // all those of the table that it was fitted to
  std::string weights;               // a column; empty: none
  GlmFamily family = GlmFamily::kGaussian;
  GlmLink link = GlmLink::kIdentity;
  TableFormat format;

  Formula formula;  // the text, read
  /// The levels of the response where it is a column of two texts, of which the second one counts.
  std::vector<std::string> response_levels;
  std::vector<DesignVariable> variables;  // of the formula
  /// By variable: the levels that were left out with their rows, as their responses are all alike.
  std::vector<std::vector<std::string>> separated;
  /// By column of ListDesignColumns: the coefficient, which is 0 where the column is aliased.
  std::vector<DesignColumn> design_columns;
  std::vector<double> coefficients;
  std::vector<bool> is_aliased;

  /// The columns of a table that predictions need, as texts those of factors. InvalidArgument names
  /// those that `header` lacks. `with_response` has those of the response and the weights too.
  StatusOr<FormulaColumns> ColumnsIn(const TableHeader& header, bool with_response) const;
  /// By combination of the levels of a term's factors, that of the first one changing fastest: the
  /// place among `design_columns`, or -1 where there is no coefficient, as with reference levels.
  std::vector<int32_t> ColumnsOfTerm(int64_t term) const;
  /// The coefficients of ColumnsOfTerm.
  std::vector<double> CoefficientsOfTerm(int64_t term) const;
};

}  // namespace tenon
