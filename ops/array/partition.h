// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"

// What DynamicPartition and DynamicStitch, which has `n` indices and `n` data, demand of their
// inputs on every device.

namespace tenon {

/// Checks that data[i] begins with the shape of its indices and that all agree on the rest, which
/// is returned.
StatusOr<DimVector> StitchedRow(const KernelContext& ctx, int n);

/// The error of element `i` of DynamicPartition's partitions, which have that shape, when it is not
/// one of `parts`.
Status PartOutOfRange(const Shape& partitions, int64_t i, int64_t part, int64_t parts);

/// The error of an index that is negative, of indices[i].
Status NegativeStitchIndex(int i, int64_t index);

}  // namespace tenon
