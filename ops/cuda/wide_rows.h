// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/tensor.h"

namespace tenon::cuda {

/// How rows are moved: as `width` elements of the size of `type`, which may be several of theirs.
struct WideRows {
  DType type;
  int64_t width;
};

/// Rows of `width` elements of tensors at these addresses, of elements of `type`, as the widest
/// elements that they are made of.
inline WideRows WidenRows(DType type, uint64_t a, uint64_t b, int64_t width) {
  const auto bytes = static_cast<int64_t>(SizeOf(type)) * width;
  constexpr std::pair<DType, int64_t> kWide[] = {
      {DType::kComplex128, 16}, {DType::kUInt64, 8}, {DType::kUInt32, 4}, {DType::kUInt16, 2}};
  for (const auto& [wide, size] : kWide) {
    if (size <= static_cast<int64_t>(SizeOf(type))) break;
    if (bytes % size == 0 && a % size == 0 && b % size == 0) return {wide, bytes / size};
  }
  return {type, width};
}
inline WideRows WidenRows(const Tensor& a, const Tensor& b, int64_t width) {
  return WidenRows(a.dtype(), reinterpret_cast<uintptr_t>(a.raw_data()),
                   reinterpret_cast<uintptr_t>(b.raw_data()), width);
}

}  // namespace tenon::cuda
