// SPDX-License-Identifier: Apache-2.0
#include "train/value_as.h"

#include "ops/array/constants.h"
#include "ops/math/math_ops.h"

namespace tenon {

Output ValueAs(const Input& value, DType dtype) {
  if (value.literal() != nullptr) return Const(value, {.dtype = dtype});
  const Output tensor = Const(value);
  return tensor.dtype() == dtype ? tensor : Cast(tensor, dtype);
}

}  // namespace tenon
