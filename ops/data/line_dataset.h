// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/data/dataset.h"

namespace tenon {

/// The lines of files without the first `skip` of each; inputs 0 to 2 of `ctx` are filenames,
/// compression_type and buffer_size, as those of TextLineDataset.
StatusOr<DatasetPtr> ReadLineDataset(const KernelContext& ctx, int64_t skip);

}  // namespace tenon
