// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/math/gemm.h"

// Products of many matrices of one shape. Where they are so small that a library takes longer to
// begin with each of them than plain loops take to end it, they are made in plain loops.

namespace tenon {

/// Matrices that lie evenly apart: those of product i begin i * step elements after the first ones,
/// and the products follow each other without gaps. A step of 0 takes the same matrix for all.
struct GemmRun {
  const void* a;
  int64_t a_step;
  const void* b;
  int64_t b_step;
  void* c;
  int64_t count;
};

/// The products, as Gemm makes them but for rounding, one after another; sizes are at least 1.
/// Stops when the kernel is interrupted.
Status Gemms(DType type, const GemmShape& shape, const GemmRun& run);

/// The same on all threads that there are.
Status ParallelGemms(DType type, const GemmShape& shape, const GemmRun& run);

/// A guess of what one of many such products costs, in ns.
double GemmCost(DType type, const GemmShape& shape);

}  // namespace tenon
