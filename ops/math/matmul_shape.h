// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/shape_inference.h"
#include "ops/math/gemm.h"

namespace tenon {

/// The sizes of a product of two matrices; InvalidArgument
/// "Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]".
StatusOr<GemmShape> MatMulSizes(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b);

/// Of MatMul and of the ops fused from it.
Status MatMulShape(ShapeContext& c);

}  // namespace tenon
