// SPDX-License-Identifier: Apache-2.0
#include "ops/random/initial_values.h"

#include "ops/array/constants.h"
#include "ops/random/random_ops.h"

namespace tenon {

Output RandomNormal(const Input& shape, const RandomNormalOptions& options) {
  const CalledFrom caller(options.location);
  const Output dims = Const(shape);
  const NameScope scope("random_normal");
  return RandomStandardNormal(dims, options.dtype, {.seed = options.seed});
}

}  // namespace tenon
