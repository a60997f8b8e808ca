// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/scope.h"

// Small pieces that gradients are composed of.

namespace tenon {

/// A scalar constant of a numeric dtype, rounded or truncated to it.
Output ScalarOf(const Scope& s, DType dtype, double value);
/// A constant vector of int32.
Output IntVector(const Scope& s, const std::vector<int32_t>& values);
/// The shape of `x` as an int32 vector: a constant when it is fully known.
Output ShapeVector(const Scope& s, Output x);
/// `x` under the shape that the vector `shape` says.
Output ReshapeTo(const Scope& s, Output x, Output shape);
/// x * factor
Output Scaled(const Scope& s, Output x, double factor);
/// The complex conjugate of `x`; `x` itself when it is real.
Output ConjugateOf(const Scope& s, Output x);

}  // namespace tenon
