// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

namespace segment_internal {

/// Floats or doubles that are accumulated in four registers of AVX2: larger vectors are not given
/// to functions where the processor may have none.
template <typename T>
struct Columns {
  typedef T Vector __attribute__((vector_size(32)));  // NOLINT
  static constexpr int64_t kLanes = sizeof(Vector) / sizeof(T);
  static constexpr int64_t kCount = 4 * kLanes;
};

/// acc = fn(acc, row) for each row by.rows[begin, end) of `from`, of Columns<T>::kCount columns;
/// false when the kernel is interrupted.
template <typename T, typename Fn>
bool AccumulateColumns(const T* from, const SegmentedRows& by, int64_t begin, int64_t end,
                       int64_t width, T init, const Fn& fn, T* sums) {
  using Vector = typename Columns<T>::Vector;
  constexpr int64_t kLanes = Columns<T>::kLanes;
  std::fill_n(sums, kLanes, init);  // which may be -0, that nothing is added to
  Vector a;
  std::memcpy(&a, sums, sizeof(a));
  Vector b = a, c = a, d = a;
  const auto add = [&](Vector& acc, const T* x, int64_t k) {
    Vector row;
    std::memcpy(&row, x, sizeof(row));
    acc = fn(acc, row, k);
  };
  for (int64_t k = begin; k < end; ++k) {
    if ((k - begin + 1) % kStepsBetweenLooks == 0 && Interrupted()) return false;
    const T* const x = from + by.rows[k] * width;
    add(a, x, k);
    add(b, x + kLanes, k);
    add(c, x + 2 * kLanes, k);
    add(d, x + 3 * kLanes, k);
  }
  std::memcpy(sums, &a, sizeof(a));
  std::memcpy(sums + kLanes, &b, sizeof(b));
  std::memcpy(sums + 2 * kLanes, &c, sizeof(c));
  std::memcpy(sums + 3 * kLanes, &d, sizeof(d));
  return true;
}

}  // namespace segment_internal

/// For each segment s and each of `width` columns: acc = init, then acc = fn(acc, element, k) for
/// each row by.rows[k] of `from` in order, and row s of `to` gets finish(acc, number of rows). In
/// parallel by segments; stops when the kernel is interrupted. `fn` takes numbers and, of floats
/// and doubles, vectors of them.
template <typename T, typename Fn, typename Finish>
void AccumulateSegments(const T* from, const SegmentedRows& by, int64_t width, T* to,
                        ComputeType<T> init, Fn fn, Finish finish) {
  using C = ComputeType<T>;
  // The accumulators of so many columns stay in the nearest cache.
  constexpr int64_t kMostColumns = 256;
  const double rows_each = static_cast<double>(by.rows.size()) / static_cast<double>(by.segments());
  const double cost_ns = (2 + rows_each) * (2 + 0.3 * static_cast<double>(width));
  ParallelFor(by.segments(), cost_ns, [&](int64_t first, int64_t last) {
    C acc[kMostColumns];
    for (int64_t s = first; s < last; ++s) {
      const int64_t begin = by.starts[s], end = by.starts[s + 1];
      for (int64_t column = 0, n = 0; column < width; column += n) {
        n = std::min(kMostColumns, width - column);
        bool done = false;
        if constexpr (std::is_floating_point_v<T>) {
          constexpr int64_t kTogether = segment_internal::Columns<T>::kCount;
          if (n >= kTogether) {
            n = kTogether;
            done = true;
            if (!segment_internal::AccumulateColumns(from + column, by, begin, end, width, init, fn,
                                                     acc)) {
              return;
            }
          }
        }
        if (n == 1) {  // a sum in a register, and no loop over one column
          done = true;
          C one = init;
          for (int64_t k = begin; k < end; ++k) {
            if ((k - begin + 1) % kStepsBetweenLooks == 0 && Interrupted()) return;
            one = fn(one, static_cast<C>(from[by.rows[k] * width + column]), k);
          }
          acc[0] = one;
        }
        if (!done) {
          std::fill_n(acc, n, init);
          for (int64_t k = begin; k < end; ++k) {
            if ((k - begin + 1) % kStepsBetweenLooks == 0 && Interrupted()) return;
            const T* x = from + by.rows[k] * width + column;
            TENON_SIMD
            for (int64_t j = 0; j < n; ++j) acc[j] = fn(acc[j], static_cast<C>(x[j]), k);
          }
        }
        T* y = to + s * width + column;
        for (int64_t j = 0; j < n; ++j) y[j] = static_cast<T>(finish(acc[j], end - begin));
      }
    }
  });
}

}  // namespace tenon
