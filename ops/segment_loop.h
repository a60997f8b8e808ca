// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "ops/maths.h"

namespace tenon {

/// Which rows of a tensor belong to which segment: to segment s those that are
/// rows[starts[s]] .. rows[starts[s + 1] - 1].
struct SegmentedRows {
  CountedVector<int64_t> starts;
  CountedVector<int64_t> rows;

  int64_t segments() const { return static_cast<int64_t>(starts.size()) - 1; }
};

/// For each segment s and each of `width` columns: acc = init, then acc = fn(acc, element, k) for
/// each row by.rows[k] of `from` in order, and row s of `to` gets finish(acc, number of rows). In
/// parallel by segments; stops when the kernel is interrupted.
template <typename T, typename Fn, typename Finish>
void AccumulateSegments(const T* from, const SegmentedRows& by, int64_t width, T* to,
                        ComputeType<T> init, Fn fn, Finish finish) {
  using C = ComputeType<T>;
  // The accumulators of so many columns stay in the nearest cache.
  constexpr int64_t kColumns = 256;
  const double rows_each = static_cast<double>(by.rows.size()) / static_cast<double>(by.segments());
  const double cost_ns = (2 + rows_each) * (2 + 0.3 * static_cast<double>(width));
  ParallelFor(by.segments(), cost_ns, [&](int64_t first, int64_t last) {
    C acc[kColumns];
    for (int64_t s = first; s < last; ++s) {
      const int64_t begin = by.starts[s], end = by.starts[s + 1];
      for (int64_t column = 0; column < width; column += kColumns) {
        const int64_t n = std::min(kColumns, width - column);
        std::fill_n(acc, n, init);
        for (int64_t k = begin; k < end; ++k) {
          if ((k - begin + 1) % kStepsBetweenLooks == 0 && Interrupted()) return;
          const T* x = from + by.rows[k] * width + column;
          TENON_SIMD
          for (int64_t j = 0; j < n; ++j) acc[j] = fn(acc[j], static_cast<C>(x[j]), k);
        }
        T* y = to + s * width + column;
        for (int64_t j = 0; j < n; ++j) y[j] = static_cast<T>(finish(acc[j], end - begin));
      }
    }
  });
}

}  // namespace tenon
