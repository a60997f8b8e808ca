// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/build/building.h"

// For gradients of decompositions: where eigenvalues or singular values are equal, or 0, they are
// not defined; these reciprocals keep what is returned finite.

namespace tenon {

/// x / (x^2 + 1e-20)
Output SafeReciprocal(const Output& x);
/// For each vector x the matrix of SafeReciprocal(x[j] - x[i]), with 0 on its diagonal.
Output ReciprocalsOfDifferences(const Output& x);

}  // namespace tenon
