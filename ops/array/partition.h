// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/kernel.h"

// What DynamicStitch demands of its inputs, `n` indices and `n` data, on every device.

namespace tenon {

/// Checks that data[i] begins with the shape of its indices and that all agree on the rest, which
/// is returned.
StatusOr<DimVector> StitchedRow(const KernelContext& ctx, int n);

/// The error of an index that is negative, of indices[i].
Status NegativeStitchIndex(int i, int64_t index);

}  // namespace tenon
