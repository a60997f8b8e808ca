// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/shape_inference.h"
#include "ops/broadcast.h"
#include "ops/math/gemm.h"

namespace tenon {

/// The sizes of a product of the matrices that the last two dimensions of `a` and `b` are, -1 where
/// they are not known (S is Shape or PartialShape); InvalidArgument
/// "Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]".
template <typename S>
StatusOr<GemmShape> ProductSizes(const S& a, const S& b, bool transpose_a, bool transpose_b) {
  const auto x = a.dims().last(2), y = b.dims().last(2);
  const GemmShape gemm{x[transpose_a], y[!transpose_b], x[!transpose_a], transpose_a, transpose_b};
  if (gemm.k >= 0 && y[transpose_b] >= 0 && gemm.k != y[transpose_b]) {
    return InvalidArgument("Matrix size-incompatible: In[0]: ", a, ", In[1]: ", b);
  }
  return gemm;
}

/// The same of two matrices.
StatusOr<GemmShape> MatMulSizes(const Tensor& a, const Tensor& b, bool transpose_a,
                                bool transpose_b);

/// Products of matrices, whose batch dimensions are walked as `batch` says.
struct BatchedProduct {
  BroadcastPlan batch;
  GemmShape gemm;
};
/// The sizes of the products of matrices that the last two dimensions of `x` and `y` are;
/// InvalidArgument when these or, unless it `broadcasts`, the others do not fit.
StatusOr<BatchedProduct> BatchMatMulSizes(const Shape& x, const Shape& y, bool adj_x, bool adj_y,
                                          bool broadcasts);

/// The shape function of MatMul and of the ops fused from it.
Status MatMulShape(ShapeContext& c);

}  // namespace tenon
