// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/build/building.h"

namespace tenon {

struct RandomNormalOptions {
  DType dtype = DType::kFloat;
  /// The op's seed; with the graph's it makes the values reproducible (see SetRandomSeed).
  int64_t seed = 0;
  std::source_location location = std::source_location::current();
};
/// Samples of the normal distribution with mean 0 and deviation 1, under the name random_normal.
Output RandomNormal(const Input& shape, const RandomNormalOptions& options = {});

}  // namespace tenon
