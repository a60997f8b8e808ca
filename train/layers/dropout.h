// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/build/building.h"

namespace tenon {

struct DropoutOptions {
  /// In training only elements are dropped: a bool when the graph says it, or a bool scalar that
  /// the step knows.
  Input training = true;
  /// The shape of what is drawn, broadcast to that of x: {batch, 1, features} drops features at all
  /// places together. By default the shape of x.
  Input noise_shape = {};
  /// The seed of the op that draws; see SetRandomSeed.
  int64_t seed = 0;
  std::string name = "dropout";
  std::source_location location = std::source_location::current();
};

/// Each element of x with probability `rate` 0 and else divided by 1 - rate, drawn anew in each
/// step (tf.nn.dropout; Srivastava et al. 2014). `rate`: a number in [0, 1), else a mistake, where
/// 0 gives x itself; or a scalar that the step knows, which is not checked. With the same seeds,
/// the elements that TensorFlow drops.
///
///   h = Dropout(h, 0.5, {.training = training});
Output Dropout(const Input& x, const Input& rate, const DropoutOptions& options = {});

}  // namespace tenon
