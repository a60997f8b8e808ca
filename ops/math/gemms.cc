// SPDX-License-Identifier: Apache-2.0
#include "ops/math/gemms.h"

#include <algorithm>

#include "core/base/interruption.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// Multiplications up to which plain loops are faster: of floats whatever the sides, and where no
/// side is long; of others, of which compilers make slower loops.
constexpr int64_t kTinyOfAnySides = 1024;
constexpr int64_t kTinyOfShortSides = 1 << 14, kLongestShortSide = 64;
constexpr int64_t kTinyOfOthers = 256;
/// Elements of a matrix that is transposed before it is multiplied.
constexpr int64_t kMostPacked = 1024;
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

/// `kRows` rows and `kWidth` columns of a product from row i and column j on: rows of y, which lie
/// together, by elements of x.
template <int64_t kRows, int64_t kWidth, typename T>
void Block(int64_t i, int64_t j, int64_t k, Strided<const T> x, Strided<const T> y, Strided<T> z) {
  using C = ComputeType<T>;
  C sums[kRows][kWidth] = {};
  const T* const from = x.at + i * x.row;
  for (int64_t p = 0; p < k; ++p) {
    const T* const row = y.at + p * y.row + j;
    for (int64_t r = 0; r < kRows; ++r) {
      const C factor = static_cast<C>(from[r * x.row + p * x.column]);
      for (int64_t l = 0; l < kWidth; ++l) {
        sums[r][l] = AddProduct(sums[r][l], factor, static_cast<C>(row[l]));
      }
    }
  }
  for (int64_t r = 0; r < kRows; ++r) {
    T* const to = z.at + (i + r) * z.row + j * z.column;
    if (z.column == 1) {
      for (int64_t l = 0; l < kWidth; ++l) to[l] = T(sums[r][l]);
    } else {
      for (int64_t l = 0; l < kWidth; ++l) to[l * z.column] = T(sums[r][l]);
    }
  }
}

template <int64_t kWidth, typename T>
void Columns(int64_t j, int64_t m, int64_t k, Strided<const T> x, Strided<const T> y,
             Strided<T> z) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) Block<4, kWidth>(i, j, k, x, y, z);
  for (; i < m; ++i) Block<1, kWidth>(i, j, k, x, y, z);
}

/// z[m,n] = x[m,k] y[k,n], where neighbours in a row of y lie together.
template <typename T>
void ByRows(int64_t m, int64_t n, int64_t k, Strided<const T> x, Strided<const T> y, Strided<T> z) {
  int64_t j = 0;
  for (; j + 16 <= n; j += 16) Columns<16>(j, m, k, x, y, z);
  if (j + 8 <= n) Columns<8>(j, m, k, x, y, z), j += 8;
  if (j + 4 <= n) Columns<4>(j, m, k, x, y, z), j += 4;
  if (j + 2 <= n) Columns<2>(j, m, k, x, y, z), j += 2;
  if (j < n) Columns<1>(j, m, k, x, y, z);
}

/// The same where neighbours in a column of y lie together: of k n <= kMostPacked elements.
template <typename T>
void ByPackedRows(int64_t m, int64_t n, int64_t k, Strided<const T> x, Strided<const T> y,
                  Strided<T> z) {
  T rows[kMostPacked];
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) rows[p * n + j] = y.at[j * y.column + p];
  }
  ByRows<T>(m, n, k, x, {rows, n, 1}, z);
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

/// z[m,n] = x[m] y[n].
template <typename T>
void Outer(int64_t m, int64_t n, const T* x, const T* y, T* z) {
  using C = ComputeType<T>;
  if (n == 1) std::swap(m, n), std::swap(x, y);
  for (int64_t i = 0; i < m; ++i) {
    const C factor = static_cast<C>(x[i]);
    for (int64_t j = 0; j < n; ++j) {
      z[i * n + j] = T(AddProduct(C(0), factor, static_cast<C>(y[j])));
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
  const int64_t by_rows = !s.transpose_b ? s.n : 0;
  const int64_t by_columns = s.transpose_a ? s.m : 0;
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
  if (s.k == 1) {
    each([&] { Outer<T>(s.m, s.n, x.at, y.at, z.at); });
  } else if (by_dots > std::max(by_rows, by_columns)) {
    if (s.m >= 4 && s.n * s.k <= kMostPacked) {
      each([&] { ByPackedRows<T>(s.m, s.n, s.k, x, y, z); });
    } else {
      each([&] { ByDots<T>(s.m, s.n, s.k, x, y, z); });
    }
  } else if (by_rows >= by_columns) {
    each([&] { ByRows<T>(s.m, s.n, s.k, x, y, z); });
  } else {
    // The transposes of both, in the other order, give the transpose.
    each([&] {
      ByRows<T>(s.n, s.m, s.k, {y.at, y.column, y.row}, {x.at, x.column, x.row},
                {z.at, z.column, z.row});
    });
  }
}

bool IsTiny(DType type, const GemmShape& s) {
  const int64_t longest = std::max({s.m, s.n, s.k});
  // Only where none is longer does their product fit.
  if (longest > kTinyOfAnySides) return false;
  const int64_t work = s.m * s.n * s.k;
  if (!IsFloating(type)) return work <= kTinyOfOthers;
  return work <= (longest <= kLongestShortSide ? kTinyOfShortSides : kTinyOfAnySides);
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
  if (IsTiny(type, shape)) {
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
  ParallelFor(run.count, GemmCost(type, shape), [&](int64_t begin, int64_t end) {
    const Status s = Gemms(type, shape, PartOf(run, type, shape, begin, end - begin));
    if (s.ok()) return;
    MutexLock lock(mu);
    status.Update(s);
  });
  return status;
}

double GemmCost(DType type, const GemmShape& s) {
  const double work =
      static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  return IsTiny(type, s) ? 10 + 0.1 * work : 500 + 0.02 * work;
}

}  // namespace tenon
