// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/tensor/dtype.h"

namespace tenon {

/// A product of row-major matrices: c[m,n] = a[m,k] * b[k,n], where a (b) is stored as [k,m]
/// ([n,k]) when transposed. An empty sum (k = 0) gives zeros.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

/// Multiplications that take about a second on one core.
inline constexpr double kGemmBlockWork = 4e10;

/// Computes it for any numeric dtype; integers wrap. float runs in oneDNN, with as many threads as
/// the budget allows. 16-bit floats are multiplied in float. ResourceExhausted when memory is out.
/// A product of more than `block_work` multiplications is made in blocks of rows, and left
/// unfinished between two of them when the kernel is interrupted (see core/base/interruption.h).
/// How it is cut into these depends on the shape alone.
Status Gemm(DType type, const GemmShape& shape, const void* a, const void* b, void* c,
            double block_work = kGemmBlockWork);

/// oneDNN's product of floats; sizes are at least 1.
Status GemmFloat(const GemmShape& shape, const float* a, const float* b, float* c);

}  // namespace tenon
