// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/shape.h"

namespace tenon::testing {

/// The element of `t` that belongs to place `index` of the broadcast shape `shape`.
inline int64_t NaiveOffset(const Shape& t, const Shape& shape, int64_t index) {
  int64_t offset = 0, stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const int own = i - (shape.rank() - t.rank());
    const int64_t place = index % shape.dim(i);
    index /= shape.dim(i);
    if (own < 0) continue;
    if (t.dim(own) != 1) offset += place * stride;
    stride *= t.dim(own);
  }
  return offset;
}

}  // namespace tenon::testing
