// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "ops/glm/glm_sums.h"
#include "train/glm/formula/design_columns.h"
#include "train/glm/formula/formula.h"
#include "train/glm/formula/formula_columns.h"
#include "train/glm/model/arrow_covariance.h"

namespace tenon {

/// An interval as R's cut() calls it: "(1,5]".
std::string IntervalName(double low, double high);

/// The product of the numbers at some places.
GlmNumber ProductOf(const std::vector<GlmNumber>& numbers, const std::vector<int64_t>& which);

/// In which units a design has its numbers.
enum class ColumnUnits : uint8_t {
  kDeviations,   ///< Centered at their means, in standard deviations: as the steps of a stream see
                 ///< them.
  kPowersOfTwo,  ///< Near these, so that next to no number is rounded.
};

/// A formula over a table: the design of its passes, and the columns that have coefficients.
class GlmModel {
 public:
  /// InvalidArgument, naming the column and what was wanted, where kinds do not suit the formula.
  static StatusOr<GlmModel> Create(const Formula& formula, const FormulaColumns& columns,
                                   const ColumnKinds& kinds, const std::string& weights,
                                   GlmFamily family, GlmLink link);

  /// A design with the intercept, every number and every factor alone, from which rows are
  /// counted.
  const GlmDesign& margins() const { return margins_; }
  /// The words for a number of margins(), which BadGlmRow counts.
  std::string LabelOfNumber(int64_t part) const;
  /// The rows with each level of each variable, and the sum of their responses. `sums` are those of
  /// margins() in a pass kRows.
  struct LevelSums {
    std::vector<double> rows, responses;  // by level; empty for numbers
  };
  std::vector<LevelSums> LevelSumsOf(const GlmSums& sums) const;
  /// Takes out levels, by variable, with their rows. What was made of margins() before is void.
  void LeaveOut(const std::vector<std::vector<bool>>& levels);
  /// Makes the design, with numbers centered and scaled as `sums`, of margins(), say.
  void Settle(const GlmSums& sums, double num_rows, ColumnUnits units);
  const GlmDesign& design() const { return design_; }

  const std::vector<DesignVariable>& variables() const { return variables_; }
  const std::vector<DesignColumn>& columns() const { return columns_; }
  /// A column's place in the sums of design().
  const std::vector<GlmSums::Column>& places() const { return places_; }
  /// The coefficients of the columns in the units of the data, of those of design().
  Eigen::VectorXd ToUnits(const Eigen::VectorXd& coefficients) const;
  /// The way back.
  Eigen::VectorXd FromUnits(const Eigen::VectorXd& coefficients) const;
  /// The covariance of coefficients in the units of the data, of that of those of design().
  ArrowCovariance CovarianceToUnits(ArrowCovariance covariance) const;
  /// The standard deviation of a column's number; 1 without one.
  double deviation(size_t column) const { return deviations_[column]; }
  /// What a coefficient of design() is multiplied with, in the units of the data.
  double scale(size_t column) const { return scales_[column]; }

 private:
  GlmModel(const Formula& formula, const FormulaColumns& columns, const ColumnKinds& kinds)
      : formula_(formula), table_columns_(columns), kinds_(kinds) {}
  StatusOr<GlmNumber> NumberOf(const NumericExpression& expression, std::string_view label) const;
  Status AddVariable(const FormulaVariable& variable);
  Status AddFactor(const FormulaVariable& variable, int64_t column);
  Status SetResponse();
  void ListProducts();
  /// The numeric variables of a term, and its factors, as places in the design.
  std::vector<int64_t> NumbersOf(const FormulaTerm& term) const;
  std::vector<int64_t> FactorsOf(const FormulaTerm& term) const;

  Formula formula_;
  FormulaColumns table_columns_;
  ColumnKinds kinds_;
  GlmDesign margins_, design_;
  std::vector<GlmNumber> numbers_;              // by variable
  std::vector<int64_t> factors_;                // by variable: its place in margins(), or -1
  std::vector<std::vector<int64_t>> products_;  // of numeric variables, as in margins().numbers
  std::vector<double> scales_, centers_, deviations_;  // by column
  std::vector<DesignVariable> variables_;
  std::vector<DesignColumn> columns_;
  std::vector<GlmSums::Column> places_;
};

}  // namespace tenon
