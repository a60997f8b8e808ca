// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/base/half.h"
#include "core/device/communicator.h"
#include "core/tensor/dtype.h"
#include "core/tensor/scaling.h"

namespace tenon {

/// out[i] = a[i] and b[i] reduced, for `count` elements; `out` may be either of them.
using ReductionFunction = void (*)(void* out, const void* a, const void* b, size_t count);

template <typename T, typename Combine>
void ReduceElements(void* out, const void* a, const void* b, size_t count) {
  auto* const to = static_cast<T*>(out);
  const auto *const x = static_cast<const T*>(a), *const y = static_cast<const T*>(b);
  // Memory that overlaps is the same from its begin, which compilers do not know.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (size_t i = 0; i < count; ++i) to[i] = Combine::Of(x[i], y[i]);
}

struct SumOfTwo {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct ProductOfTwo {
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a * b);
  }
};
template <typename T>
bool IsNan(T value) {
  if constexpr (std::is_integral_v<T>) return false;
  return std::isnan(static_cast<double>(value));
}
/// A NaN stays, whichever of the two it is.
struct LesserOfTwo {
  template <typename T>
  static T Of(T a, T b) {
    return b < a || IsNan(b) ? b : a;
  }
};
struct GreaterOfTwo {
  template <typename T>
  static T Of(T a, T b) {
    return a < b || IsNan(b) ? b : a;
  }
};

template <typename T>
ReductionFunction ReductionOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      return ReduceElements<T, SumOfTwo>;
    case Reduction::kMin:
      return ReduceElements<T, LesserOfTwo>;
    case Reduction::kMax:
      return ReduceElements<T, GreaterOfTwo>;
    case Reduction::kProduct:
      return ReduceElements<T, ProductOfTwo>;
  }
  return nullptr;
}

/// Null for dtypes that are not reduced: all but the numbers of 8 to 64 bits. Of a mean it is the
/// sum, which FinishReduction divides.
inline ReductionFunction ReductionOf(DType dtype, Reduction reduction) {
  switch (dtype) {
    case DType::kFloat:
      return ReductionOf<float>(reduction);
    case DType::kDouble:
      return ReductionOf<double>(reduction);
    case DType::kHalf:
      return ReductionOf<Half>(reduction);
    case DType::kBFloat16:
      return ReductionOf<BFloat16>(reduction);
    case DType::kInt8:
      return ReductionOf<int8_t>(reduction);
    case DType::kUInt8:
      return ReductionOf<uint8_t>(reduction);
    case DType::kInt16:
      return ReductionOf<int16_t>(reduction);
    case DType::kUInt16:
      return ReductionOf<uint16_t>(reduction);
    case DType::kInt32:
      return ReductionOf<int32_t>(reduction);
    case DType::kUInt32:
      return ReductionOf<uint32_t>(reduction);
    case DType::kInt64:
      return ReductionOf<int64_t>(reduction);
    case DType::kUInt64:
      return ReductionOf<uint64_t>(reduction);
    default:
      return nullptr;
  }
}

/// Makes the mean of sums over `ranks` ranks, and leaves what is none.
inline void FinishReduction(Reduction reduction, DType dtype, void* data, size_t count, int ranks) {
  if (reduction == Reduction::kMean) ScaleNumbers(dtype, data, count, 1.0 / ranks);
}

}  // namespace tenon
