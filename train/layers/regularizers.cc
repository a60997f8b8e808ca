// SPDX-License-Identifier: Apache-2.0
#include "train/layers/regularizers.h"

#include "ops/math/math_ops.h"
#include "ops/math/operators.h"

namespace tenon {

Regularizer L1Regularizer(double scale) {
  return [scale](const Output& weight) { return Sum(Abs(weight)) * scale; };
}

Regularizer L2Regularizer(double scale) {
  return [scale](const Output& weight) { return Sum(Square(weight)) * scale; };
}

Regularizer L1L2Regularizer(double l1, double l2) {
  return
      [l1, l2](const Output& weight) { return Sum(Abs(weight)) * l1 + Sum(Square(weight)) * l2; };
}

}  // namespace tenon
