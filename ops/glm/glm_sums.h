// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/memory/counted_memory.h"
#include "data/table/table_shard.h"
#include "ops/glm/glm_design.h"
#include "ops/glm/scattered_sums.h"

namespace tenon {

/// The sums that a pass over rows gives, beside those that every pass gives (GlmTotals).
enum class GlmPass : uint8_t {
  kDeviance,  // none
  kGradient,  // X's by column, where s are the scores
  kResidual,  // the same of a linear model, added up in extended precision
  kDiagonal,  // the gradient, and the Fisher information of each column with 1 and with itself
  kRows,      // sums of columns, of squares of those without factors, and of products with the
              // response, all without weights
  kNewton,    // the gradient and the Gram matrix X'WX, with the Fisher information and the scores
  kSquares,   // the same as kNewton with the squares of scores for information (White 1980)
};

/// The sums over rows, whatever the pass. They are added up number by number.
struct GlmTotals {
  static constexpr int64_t kNumbers = 11;

  double num_rows = 0;  // that are used
  double num_missing = 0, num_weightless = 0, num_left_out = 0, num_infinite = 0;
  double num_impossible = 0;
  double deviance = 0;
  double weight = 0;
  double weighted_response = 0;
  double likelihood_constant = 0;  // of kRows alone, see LikelihoodConstant
  double response_square = 0;      // weighted
};

/// The order of the numbers in the sums of a pass: the totals, then for kGradient and kResidual the
/// gradient by column; for kDiagonal the same, the information with 1 by column, and that with
/// itself; for kRows, with 3 numbers for each of the K groups without factors (its sum, that of its
/// squares, that of its products with the response), then 2 for each column of the others (sum and
/// with the response); for those with products
///   K x (K + 1)    products of the numbers of the K groups with each other and with scores
///   L x (K + 1)    of each group with factors, for each of its L columns: the same
/// where zeros fill rows of K + 1 up to a PaddedWidth, and for each two groups i <= j with factors
/// the products of their columns: one for each level where both have the same factors, else L_i x
/// L_j.
class GlmSumsLayout {
 public:
  /// `design`, which must outlive this, was checked.
  GlmSumsLayout(const GlmDesign& design, GlmPass pass);

  GlmPass pass() const { return pass_; }
  const GlmDesign& design() const { return design_; }
  /// How many numbers there are. May exceed what memory holds.
  int64_t size() const { return size_; }

  /// The places, in the design, of the groups without factors and of those with.
  const std::vector<int64_t>& plain_groups() const { return plain_; }
  const std::vector<int64_t>& coded_groups() const { return coded_; }
  /// Where the columns of a group begin, by its place in the design.
  int64_t first_column(int64_t group) const { return first_columns_[group]; }
  /// Whether a group of the design has factors, and its index in coded_groups or plain_groups.
  bool is_coded(int64_t group) const { return !design_.groups[group].factors.empty(); }
  int64_t place(int64_t group) const { return places_[group]; }
  int64_t num_plain() const { return static_cast<int64_t>(plain_.size()); }
  int64_t num_columns() const { return num_columns_; }
  /// How many numbers a plain or coded column has in kRows or with products, and where they begin.
  /// `index` is in plain_groups or coded_groups.
  int64_t plain_width() const { return pass_ == GlmPass::kRows ? 3 : PaddedWidth(num_plain() + 1); }
  int64_t coded_width() const { return pass_ == GlmPass::kRows ? 2 : PaddedWidth(num_plain() + 1); }
  int64_t PlainRow(int64_t index) const { return GlmTotals::kNumbers + index * plain_width(); }
  int64_t CodedRow(int64_t index, int64_t level) const {
    return coded_rows_[index] + level * coded_width();
  }
  /// The products of two coded groups, i <= j, and whether there is one for each level.
  int64_t Pair(int64_t i, int64_t j) const { return pairs_[i * coded_.size() + j]; }
  bool SameFactors(int64_t i, int64_t j) const;
  int64_t NumLevels(int64_t index) const { return levels_[index]; }

  bool has_products() const { return pass_ >= GlmPass::kNewton; }

 private:
  const GlmDesign& design_;
  const GlmPass pass_;
  int64_t num_columns_ = 0;
  std::vector<int64_t> plain_, coded_, places_, first_columns_, levels_, coded_rows_, pairs_;
  int64_t size_ = GlmTotals::kNumbers;
};

/// Adds up the rows of a shard that was read in a pass. `coefficients` are by column of the design.
/// The result is the same, bit by bit, for the same rows and ThreadBudget. It is unspecified when
/// the running kernel is interrupted. ResourceExhausted when the sums of all threads exceed
/// `max_bytes`; the errors of files that are read again.
StatusOr<CountedVector<double>> AddGlmSums(const GlmSumsLayout& layout, const TableShard& shard,
                                           absl::Span<const double> coefficients,
                                           const FileContext& context = {},
                                           int64_t max_bytes = int64_t{4} << 30);

/// The totals of such sums.
GlmTotals TotalsOf(absl::Span<const double> sums);

/// The entries of the Gram matrix and the gradient in the sums of a pass.
class GlmSums {
 public:
  /// `layout` and `sums` must outlive this.
  GlmSums(const GlmSumsLayout& layout, absl::Span<const double> sums)
      : layout_(layout), sums_(sums) {}

  /// A column of the design: a group and, among its columns, which.
  struct Column {
    int64_t group;  // in the design
    int64_t level = 0;
  };

  /// The product of a column with scores. REQUIRES: the pass is not kRows.
  double Gradient(Column column) const;
  /// REQUIRES: the pass has products.
  double Product(Column a, Column b) const;
  /// The information of a column with 1, and with itself. REQUIRES: the pass is kDiagonal.
  double WithOne(Column column) const { return sums_[PlaceOf(column) + layout_.num_columns()]; }
  double WithItself(Column column) const {
    return sums_[PlaceOf(column) + 2 * layout_.num_columns()];
  }
  /// The products of a column with the columns of a group with factors: that with column l is
  /// first[l * stride]. REQUIRES: the pass has products; the column's group has other factors.
  struct Products {
    const double* first;
    int64_t stride;
  };
  Products ProductsWith(Column column, int64_t group) const;
  /// The sum of a column, and that of its products with the response; the squares of one without
  /// factors. REQUIRES: the pass is kRows.
  double Sum(Column column) const { return sums_[RowOf(column)]; }
  double WithResponse(Column column) const;
  double Squares(int64_t group) const;

 private:
  int64_t RowOf(Column column) const;
  int64_t PlaceOf(Column column) const {
    return GlmTotals::kNumbers + layout_.first_column(column.group) + column.level;
  }

  const GlmSumsLayout& layout_;
  absl::Span<const double> sums_;
};

}  // namespace tenon
