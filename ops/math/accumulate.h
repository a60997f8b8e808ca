// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace tenon {

/// a + b for tensors of one dtype, numeric or variant. InvalidArgument when the dtypes or shapes
/// differ or cannot be added.
StatusOr<Tensor> SumOf(const Tensor& a, const Tensor& b);

/// Zeros, false, empty text in the shape of `x`; of variants what their ZerosLike gives.
StatusOr<Tensor> ZerosOf(const Tensor& x);

}  // namespace tenon
