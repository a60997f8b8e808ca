// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/memory/counted_memory.h"
#include "ops/glm/glm_family.h"
#include "ops/glm/glm_rows.h"

namespace tenon {

/// Coefficients of the columns of a design, and where they are kept: the intercept by itself in
/// part 0, the others dealt to the parts behind it in turn.
class GlmCoefficientParts {
 public:
  /// `of_column` is by column of the design: a coefficient, or -1. The intercept's is 0, if there
  /// is one: column 0 has it then.
  GlmCoefficientParts(CountedVector<int32_t> of_column, int64_t parts)
      : of_column_(std::move(of_column)),
        num_parts_(parts),
        first_(!of_column_.empty() && of_column_[0] == 0 ? 1 : 0) {}

  int32_t OfColumn(int64_t column) const { return of_column_[column]; }
  int64_t num_columns() const { return static_cast<int64_t>(of_column_.size()); }
  int64_t num_parts() const { return num_parts_; }
  int64_t PartOf(int64_t coefficient) const {
    return coefficient < first_ ? 0 : 1 + (coefficient - first_) % (num_parts_ - 1);
  }
  /// The number of a coefficient in its part.
  int64_t PlaceOf(int64_t coefficient) const {
    return coefficient < first_ ? coefficient : (coefficient - first_) / (num_parts_ - 1);
  }

 private:
  CountedVector<int32_t> of_column_;
  int64_t num_parts_;
  int64_t first_;
};

/// Rows of a table and the coefficients that they have. Groups are in another order than in their
/// design: those with a number first.
struct GlmBatch {
  int64_t num_read = 0;                            // with those that a model cannot use
  int64_t count = 0;                               // of rows, without them
  std::vector<CountedVector<int64_t>> columns;     // by part: the coefficients, each once
  std::vector<CountedVector<int32_t>> places;      // by group: where in `columns` a row's is
  std::vector<CountedVector<double>> numbers;      // by group that has one
  CountedVector<double> response, weight, offset;  // by row
};

/// Puts rows into batches. Used by one thread at a time.
class GlmBatchMaker {
 public:
  /// `design`, which was checked, and `parts` must outlive this; `rows` is what a batch has at
  /// most.
  GlmBatchMaker(const GlmDesign& design, const GlmCoefficientParts& parts, int64_t rows);

  void Begin();
  /// Adds rows of a block, GlmRowReader::kChunkRows at most.
  void Add(const TableBlock& block, int64_t begin, int64_t count);
  int64_t num_read() const { return batch_.num_read; }
  /// The batch, until the next Begin. The offset is `start` more than the rows have, and then, as
  /// the response, divided by `scale`.
  const GlmBatch& End(double start, double scale);

 private:
  /// The place of a coefficient among those that the batch has so far, in the order of their
  /// coming.
  int32_t Take(int32_t coefficient);

  const GlmCoefficientParts& parts_;
  GlmRowReader reader_;
  GlmChunk chunk_;
  std::vector<int64_t> groups_;         // of the design, those with a number first
  std::vector<int64_t> first_columns_;  // by group of the design
  size_t num_numbers_ = 0;
  CountedVector<int32_t> taken_;         // by coefficient: its place, or -1
  CountedVector<int32_t> coefficients_;  // of the batch
  CountedVector<int32_t> final_places_;  // by place
  GlmBatch batch_;
};

/// Where the numbers of a batch are: `columns` counts its coefficients, `places` has a row a group,
/// `numbers` a row for each of the first groups.
struct GlmBatchRows {
  GlmFamily family;
  GlmLink link;
  int64_t columns, groups, num_numbers, count;
  const int32_t* places;
  const double *numbers, *response, *weight, *offset;
};

/// Writes the gradient of half of the deviance of the rows by their coefficients, of which there
/// are `rows.columns`; both arrays have a number more than that, which is 0 in `weights`. The
/// result is the deviance. Places were checked.
double AddBatchGradient(const GlmBatchRows& rows, const double* weights, double* gradient);

}  // namespace tenon
