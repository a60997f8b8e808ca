// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/scope.h"

namespace tenon {

// Random values of a shape given by a tensor. `seed` 0 takes the scope's seed (see
// Scope::NextSeeds); without either the values differ from run to run. The values for given seeds
// are TensorFlow's, bit for bit.

/// In [0, 1).
Output RandomUniform(const Scope& s, Output shape, DType dtype, int64_t seed = 0);
/// Mean 0, standard deviation 1.
Output RandomStandardNormal(const Scope& s, Output shape, DType dtype, int64_t seed = 0);
/// As RandomStandardNormal, without values of 2 standard deviations and more.
Output TruncatedNormal(const Scope& s, Output shape, DType dtype, int64_t seed = 0);
/// Integers in [minval, maxval), of their dtype.
Output RandomUniformInt(const Scope& s, Output shape, Output minval, Output maxval,
                        int64_t seed = 0);
/// The rows (dimension 0) of `value` in random order.
Output RandomShuffle(const Scope& s, Output value, int64_t seed = 0);

}  // namespace tenon
