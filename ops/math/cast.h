// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"

namespace tenon {

/// `x` with its elements converted to `type` as Cast does it; `x` itself when they are of it.
/// InvalidArgument for types between which nothing is converted.
StatusOr<Tensor> ConvertedTo(DType type, const Tensor& x, KernelContext& ctx);

}  // namespace tenon
