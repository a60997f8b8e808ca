// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"
#include "ops/math/gemm.h"

// Products of matrices in device memory, in cuBLASLt.

namespace tenon::cuda {

/// `batches` products of one shape. Matrices lie row-major; the a (b) of the next product begins
/// a_stride (b_stride) elements further, which is 0 for one that all products share, and its c
/// behind that of the one before.
struct BatchedGemm {
  GemmShape shape;
  int64_t batches = 1;
  int64_t a_stride = 0, b_stride = 0;
};

/// The dtypes it multiplies: 16-bit floats are added up in float, floats never rounded to TF32.
using GemmTypes = TypeList<float, double, Half, BFloat16>;

/// Queues c = a * b, for a dtype of GemmTypes. An empty sum gives zeros. ResourceExhausted when
/// memory is out, the errors of Library without it, Unimplemented for shapes that it does not do.
Status Gemm(KernelContext& ctx, DType type, const BatchedGemm& gemm, const void* a, const void* b,
            void* c);

/// Whether GemmWithBias takes a bias at this place.
bool IsBiasAligned(const void* bias);
/// The same of one product, to each row of which `bias` is added before it is rounded.
Status GemmWithBias(KernelContext& ctx, DType type, const GemmShape& shape, const void* a,
                    const void* b, const void* bias, void* c);

}  // namespace tenon::cuda
