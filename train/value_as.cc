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

std::optional<double> KnownNumber(const Input& value) {
  if (value.literal() == nullptr) return std::nullopt;
  const auto number = value.literal()->ToTensor(DType::kDouble);
  if (!number.ok() || !number->shape().IsScalar()) return std::nullopt;
  return number->scalar<double>();
}

}  // namespace tenon
