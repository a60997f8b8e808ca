// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/half.h"
#include "core/tensor/dtype.h"

namespace tenon {

template <typename T, typename Factor = double>
void ScaleElements(T* values, size_t count, Factor factor) {
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(static_cast<Factor>(values[i]) * factor);
  }
}

/// A product of two floats is exact as a double: where the factor is a float, as that of the mean
/// over 2, 4 or 8 ranks, the product of floats is the same number, in two thirds of the time.
inline void ScaleFloats(float* values, size_t count, double factor) {
  const auto rounded = static_cast<float>(factor);
  if (static_cast<double>(rounded) == factor) {
    ScaleElements(values, count, rounded);
  } else {
    ScaleElements(values, count, factor);
  }
}

/// Multiplies numbers by `factor`, in place; leaves those of other dtypes than floats and integers
/// of 8, 32 and 64 bits as they are. Integers are cut off after the product, as Horovod does it.
inline void ScaleNumbers(DType dtype, void* data, size_t count, double factor) {
  if (factor == 1.0) return;
  switch (dtype) {
    case DType::kFloat:
      return ScaleFloats(static_cast<float*>(data), count, factor);
    case DType::kDouble:
      return ScaleElements(static_cast<double*>(data), count, factor);
    case DType::kHalf:
      return ScaleElements(static_cast<Half*>(data), count, factor);
    case DType::kBFloat16:
      return ScaleElements(static_cast<BFloat16*>(data), count, factor);
    case DType::kInt8:
      return ScaleElements(static_cast<int8_t*>(data), count, factor);
    case DType::kUInt8:
      return ScaleElements(static_cast<uint8_t*>(data), count, factor);
    case DType::kInt32:
      return ScaleElements(static_cast<int32_t*>(data), count, factor);
    case DType::kInt64:
      return ScaleElements(static_cast<int64_t*>(data), count, factor);
    default:
      return;
  }
}

}  // namespace tenon
