// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/op/kernel.h"
#include "ops/arguments.h"

namespace tenon {

/// The splits of the rows of a ragged dimension: row i is items splits[i] .. splits[i + 1] - 1.
/// InvalidArgument unless `t` is a vector of one or more numbers that are not negative and sorted.
StatusOr<IndexVector> ReadSplits(const Tensor& t);

/// Inputs 0 .. `count` - 1, the outermost first. InvalidArgument when they point past the rows of
/// the next ones, the last past `values`; with `all` unless they cover them all.
StatusOr<std::vector<IndexVector>> ReadNestedSplits(const KernelContext& ctx, int count,
                                                    int64_t values, bool all);

/// InvalidArgument when they do not fit the output's dtype.
Status WriteSplits(KernelContext& ctx, int output, absl::Span<const int64_t> splits);

}  // namespace tenon
