// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm.h"

#include <Eigen/Core>
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/parallel.h"
#include "ops/maths.h"

namespace tenon {
namespace {

template <typename T>
void GemmEigen(const GemmShape& s, const T* a, const T* b, T* c) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using In = Eigen::Map<const Matrix>;
  const In x(a, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k);
  const In y(b, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n);
  Eigen::Map<Matrix> z(c, s.m, s.n);
  const OpenMpTeam team(static_cast<double>(s.m) * s.n * s.k * 0.05);
  if (s.transpose_a && s.transpose_b) {
    z.noalias() = x.transpose() * y.transpose();
  } else if (s.transpose_a) {
    z.noalias() = x.transpose() * y;
  } else if (s.transpose_b) {
    z.noalias() = x * y.transpose();
  } else {
    z.noalias() = x * y;
  }
}

/// Row by row, so that the compiler vectorises over the columns of b. Integers are too rare in
/// products to be worth more.
template <typename T>
void GemmInteger(const GemmShape& s, const T* a, const T* b, T* c) {
  std::vector<T> untransposed;
  if (s.transpose_b) {
    untransposed.resize(s.k * s.n);
    for (int64_t j = 0; j < s.n; ++j) {
      for (int64_t p = 0; p < s.k; ++p) untransposed[p * s.n + j] = b[j * s.k + p];
    }
    b = untransposed.data();
  }
  ParallelFor(s.m, 0.2 * static_cast<double>(s.n * s.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* row = c + i * s.n;
      std::fill_n(row, s.n, T(0));
      for (int64_t p = 0; p < s.k; ++p) {
        const T factor = s.transpose_a ? a[p * s.m + i] : a[i * s.k + p];
        const T* other = b + p * s.n;
        for (int64_t j = 0; j < s.n; ++j) row[j] = Plus(row[j], Times(factor, other[j]));
      }
    }
  });
}

template <typename T>
Status GemmSmallFloat(const GemmShape& s, const T* a, const T* b, T* c) {
  const auto widen = [](const T* x, int64_t n) { return std::vector<float>(x, x + n); };
  const std::vector<float> x = widen(a, s.m * s.k), y = widen(b, s.k * s.n);
  std::vector<float> z(s.m * s.n);
  TENON_RETURN_IF_ERROR(GemmFloat(s, x.data(), y.data(), z.data()));
  for (size_t i = 0; i < z.size(); ++i) c[i] = T(z[i]);
  return OkStatus();
}

}  // namespace

Status Gemm(DType type, const GemmShape& shape, const void* a, const void* b, void* c) {
  if (shape.m == 0 || shape.n == 0) return OkStatus();
  if (shape.k == 0) {
    std::memset(c, 0, shape.m * shape.n * SizeOf(type));
    return OkStatus();
  }
  Status status;
  const bool known = Dispatch(type, NumericTypes(), [&](auto zero) {
    using T = decltype(zero);
    const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    T* z = static_cast<T*>(c);
    if constexpr (std::is_same_v<T, float>) {
      status = GemmFloat(shape, x, y, z);
    } else if constexpr (!std::is_same_v<ComputeType<T>, T>) {
      status = GemmSmallFloat(shape, x, y, z);
    } else if constexpr (std::is_integral_v<T>) {
      GemmInteger(shape, x, y, z);
    } else {
      GemmEigen(shape, x, y, z);
    }
  });
  return known ? status : Unimplemented("matrix product of ", ToString(type));
}

}  // namespace tenon
