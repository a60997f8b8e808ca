// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/data/dataset.h"

namespace tenon {

/// The lines of files without the first `skip` of each; inputs 0 to 2 of `ctx` are filenames,
/// compression_type and buffer_size, as those of TextLineDataset. With `numbers` each comes with
/// the number of its file, an int64 from 0 on.
StatusOr<DatasetPtr> ReadLineDataset(const KernelContext& ctx, int64_t skip, bool numbers);

}  // namespace tenon
