// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient/gradients.h"
#include "ops/array/array_basic_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_basic_ops.h"
#include "ops/math/operators.h"

// What most gradients are composed of.

namespace tenon {

/// The shape of `x` as an int32 vector: a constant when it is fully known.
Output ShapeVector(const Output& x);
/// The complex conjugate of `x`; `x` itself when it is real.
Output ConjugateOf(const Output& x);

/// The gradients of all outputs, zeros for those without; a handle's are as its variable.
std::vector<Output> DysOrZeros(const GradContext& g);

}  // namespace tenon
