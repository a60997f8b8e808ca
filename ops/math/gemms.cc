// SPDX-License-Identifier: Apache-2.0
#include "ops/math/gemms.h"

#include <algorithm>

#include "core/interruption.h"
#include "core/mutex.h"
#include "core/parallel.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// Multiplications up to which plain loops are faster.
constexpr int64_t kMostTinyWork = 1024;
/// Sums that are made side by side, in vector registers.
constexpr int64_t kLanes = 8;

/// sum + x * y. Of complex numbers without the look for infinities, which no library takes either.
template <typename T>
T AddProduct(T sum, T x, T y) {
  if constexpr (kIsComplex<T>) {
    return T(sum.real() + x.real() * y.real() - x.imag() * y.imag(),
             sum.imag() + x.real() * y.imag() + x.imag() * y.real());
  } else {
    return Plus(sum, Times(x, y));
  }
}

/// A matrix as the loops see it: how far apart its rows and its columns are.
template <typename T>
struct Strided {
  T* at;
  int64_t row, column;
};

/// The `kWidth` columns of a product from column j on: rows of y, which lie together, by elements
/// of x. What stands in a row of z lies together unless it is the transpose of the result.
template <int64_t kWidth, bool kTransposed, typename T>
void RowsOfWidth(int64_t m, int64_t k, int64_t j, Strided<const T> x, Strided<const T> y,
                 Strided<T> z) {
  using C = ComputeType<T>;
  for (int64_t i = 0; i < m; ++i) {
    C sums[kWidth] = {};
    for (int64_t p = 0; p < k; ++p) {
      const C factor = static_cast<C>(x.at[i * x.row + p * x.column]);
      const T* const row = y.at + p * y.row + j;
      for (int64_t l = 0; l < kWidth; ++l) {
        sums[l] = AddProduct(sums[l], factor, static_cast<C>(row[l]));
      }
    }
    const int64_t step = kTransposed ? z.column : 1;
    T* const to = z.at + i * z.row + j * step;
    for (int64_t l = 0; l < kWidth; ++l) to[l * step] = T(sums[l]);
  }
}

/// z[m,n] = x[m,k] y[k,n], where neighbours in a row of y lie together.
template <bool kTransposed, typename T>
void ByRows(int64_t m, int64_t n, int64_t k, Strided<const T> x, Strided<const T> y, Strided<T> z) {
  int64_t j = 0;
  for (; j + 16 <= n; j += 16) RowsOfWidth<16, kTransposed>(m, k, j, x, y, z);
  if (j + 8 <= n) RowsOfWidth<8, kTransposed>(m, k, j, x, y, z), j += 8;
  if (j + 4 <= n) RowsOfWidth<4, kTransposed>(m, k, j, x, y, z), j += 4;
  if (j + 2 <= n) RowsOfWidth<2, kTransposed>(m, k, j, x, y, z), j += 2;
  if (j < n) RowsOfWidth<1, kTransposed>(m, k, j, x, y, z);
}

/// The sum of x[p] * y[p].
template <typename T>
T Dot(const T* x, const T* y, int64_t k) {
  using C = ComputeType<T>;
  C sums[kLanes] = {};
  int64_t p = 0;
  for (; p + kLanes <= k; p += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      sums[l] = AddProduct(sums[l], static_cast<C>(x[p + l]), static_cast<C>(y[p + l]));
    }
  }
  C rest(0);
  for (; p < k; ++p) rest = AddProduct(rest, static_cast<C>(x[p]), static_cast<C>(y[p]));
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) sums[l] = Plus(sums[l], sums[l + half]);
  }
  return T(Plus(sums[0], rest));
}

/// The same, where neighbours in a row of x and in a column of y lie together.
template <typename T>
void ByDots(int64_t m, int64_t n, int64_t k, Strided<const T> x, Strided<const T> y, Strided<T> z) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      z.at[i * z.row + j] = Dot(x.at + i * x.row, y.at + j * y.column, k);
    }
  }
}

template <typename T>
void Products(const GemmShape& s, const GemmRun& run) {
  Strided<const T> x{static_cast<const T*>(run.a), s.transpose_a ? 1 : s.k,
                     s.transpose_a ? s.m : 1};
  Strided<const T> y{static_cast<const T*>(run.b), s.transpose_b ? 1 : s.n,
                     s.transpose_b ? s.k : 1};
  Strided<T> z{static_cast<T*>(run.c), s.n, 1};
  // How many sums each way makes side by side; of a dimension of 1 any stride is right.
  const int64_t by_rows = !s.transpose_b || s.k == 1 ? s.n : 0;
  const int64_t by_columns = s.transpose_a || s.k == 1 ? s.m : 0;
  const int64_t by_dots =
      (!s.transpose_a || s.m == 1) && (s.transpose_b || s.n == 1) ? std::min(s.k, kLanes) : 0;
  const auto each = [&](const auto& product) {
    for (int64_t i = 0; i < run.count; ++i) {
      if (i % kStepsBetweenLooks == 0 && Interrupted()) return;
      product();
      x.at += run.a_step;
      y.at += run.b_step;
      z.at += s.m * s.n;
    }
  };
  if (by_dots > std::max(by_rows, by_columns)) {
    each([&] { ByDots<T>(s.m, s.n, s.k, x, y, z); });
  } else if (by_rows >= by_columns) {
    each([&] { ByRows<false, T>(s.m, s.n, s.k, x, y, z); });
  } else {
    // The transposes of both, in the other order, give the transpose.
    each([&] {
      ByRows<true, T>(s.n, s.m, s.k, {y.at, y.column, y.row}, {x.at, x.column, x.row},
                      {z.at, z.column, z.row});
    });
  }
}

bool IsTiny(const GemmShape& s) {
  // Only where none is large does their product fit.
  return s.m <= kMostTinyWork && s.n <= kMostTinyWork && s.k <= kMostTinyWork &&
         s.m * s.n * s.k <= kMostTinyWork;
}

/// What is left of a run from product `begin` on, of `count` products.
GemmRun PartOf(const GemmRun& run, DType type, const GemmShape& s, int64_t begin, int64_t count) {
  const auto size = static_cast<int64_t>(SizeOf(type));
  return {static_cast<const char*>(run.a) + begin * run.a_step * size, run.a_step,
          static_cast<const char*>(run.b) + begin * run.b_step * size, run.b_step,
          static_cast<char*>(run.c) + begin * s.m * s.n * size,        count};
}

}  // namespace

Status Gemms(DType type, const GemmShape& shape, const GemmRun& run) {
  if (IsTiny(shape)) {
    return DispatchStatus(type, NumericTypes(), [&]<typename T>(T) { Products<T>(shape, run); });
  }
  for (int64_t i = 0; i < run.count && !Interrupted(); ++i) {
    const GemmRun one = PartOf(run, type, shape, i, 1);
    TENON_RETURN_IF_ERROR(Gemm(type, shape, one.a, one.b, one.c));
  }
  return OkStatus();
}

Status ParallelGemms(DType type, const GemmShape& shape, const GemmRun& run) {
  Mutex mu;
  Status status;
  ParallelFor(run.count, GemmCost(shape), [&](int64_t begin, int64_t end) {
    const Status s = Gemms(type, shape, PartOf(run, type, shape, begin, end - begin));
    if (s.ok()) return;
    MutexLock lock(mu);
    status.Update(s);
  });
  return status;
}

double GemmCost(const GemmShape& s) {
  const double work =
      static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  return IsTiny(s) ? 10 + 0.2 * work : 500 + 0.02 * work;
}

}  // namespace tenon
