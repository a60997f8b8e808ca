// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "core/op/kernel.h"
#include "ops/maths.h"

namespace tenon {

/// What MatrixBandPart leaves of matrices of `rows` times `columns`.
struct Band {
  int64_t rows = 0, columns = 0;
  int64_t lower = 0, upper = 0;  // how many sub- and superdiagonals, at most rows and columns

  /// The columns [First, End) of row i stay; none where End is not more.
  TENON_HD int64_t First(int64_t i) const {
    return i <= lower ? 0 : i - lower < columns ? i - lower : columns;
  }
  TENON_HD int64_t End(int64_t i) const { return i >= columns - upper ? columns : i + upper + 1; }
};

/// The band of a kernel's inputs; InvalidArgument for less than matrices and too large limits.
StatusOr<Band> ReadBand(const KernelContext& ctx);

}  // namespace tenon
