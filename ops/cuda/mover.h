// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/array/strided_copy.h"

namespace tenon::cuda {

/// In the memory of a GPU, queued; for dtypes with plain elements.
extern const Mover kDeviceMover;

}  // namespace tenon::cuda
