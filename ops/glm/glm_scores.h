// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/memory/counted_memory.h"
#include "data/table/table_shard.h"
#include "ops/glm/glm_design.h"

// How well the means that a model predicts agree with the responses of a table.

namespace tenon {

/// The bins of logits by which binary predictions are counted: of equal width, and those beyond
/// the range are in the first and the last one.
struct LogitBins {
  static constexpr int64_t kCount = 65536;
  static constexpr double kLimit = 32;  // the logits from -kLimit to kLimit
};

/// Sums over rows, which are added up number by number.
struct GlmScores {
  static constexpr int64_t kNumbers = 10;

  double num_rows = 0;  // that are used
  double num_missing = 0, num_weightless = 0, num_left_out = 0, num_infinite = 0;
  double num_impossible = 0;
  double weight = 0;
  double log_loss = 0;  // of a binomial response
  double square = 0;    // of mean - response; of a binomial one, of each trial
  double absolute = 0;  // |mean - response|
};

/// The numbers of the scores: those of GlmScores, then, of a binomial response, the weights of
/// positives by LogitBins, and those of negatives.
int64_t NumScores(GlmFamily family);

/// Adds up the rows of a shard, which was read. `coefficients` are by column of the design, which
/// was checked. The result is the same, bit by bit, for the same units and ThreadBudget, and
/// unspecified when the running kernel is interrupted.
StatusOr<CountedVector<double>> AddGlmScores(const GlmDesign& design, const TableShard& shard,
                                             absl::Span<const double> coefficients,
                                             const FileContext& context = {});

/// The first numbers of such scores.
GlmScores ScoresOf(absl::Span<const double> numbers);

}  // namespace tenon
