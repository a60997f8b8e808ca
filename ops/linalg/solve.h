// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/linalg/matrices.h"

// What the solvers of triangular systems share: the batches of matrices and right sides broadcast.

namespace tenon {

/// Makes output 0 and calls `solve(i, j, k)` for the matrix i of `a` and right side j of `b` of
/// which output k is the solution. InvalidArgument when they do not fit.
Status SolveBroadcast(KernelContext& ctx, const Matrices& a, const Matrices& b,
                      absl::FunctionRef<Status(int64_t i, int64_t j, int64_t k)> solve);

/// The shape function of a solver whose matrix has as many columns as the right side has rows.
Status TriangularSolveShape(ShapeContext& c);

/// The gradient `dx` of x, in the batch's broadcast shape, summed to the shape of x.
Output SumToBatch(const Output& dx, const Output& x, const Output& other);

}  // namespace tenon
