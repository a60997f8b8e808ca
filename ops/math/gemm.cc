// SPDX-License-Identifier: Apache-2.0
#include "ops/math/gemm.h"

#include <Eigen/Core>
#include <algorithm>
#include <cstring>

#include "core/base/interruption.h"
#include "core/base/parallel.h"
#include "core/memory/counted_memory.h"
#include "core/tensor/tensor.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// Guess of what it costs to turn a 16-bit float into a float, or back.
constexpr double kWidenNs = 0.5;

/// Rows of a block: a multiple of the groups of rows by which the libraries walk a matrix, so that
/// each row is computed as in the whole product; where few are left for the last block, these may
/// be rounded otherwise.
int64_t RowsOfBlock(const GemmShape& s, double block_work) {
  const double rows = block_work / (static_cast<double>(s.n) * static_cast<double>(s.k));
  if (rows >= static_cast<double>(s.m)) return s.m;
  const auto most = static_cast<int64_t>(rows);
  const int64_t unit = most >= 192 ? 192 : 16;
  return std::max(most / unit * unit, unit);
}

/// A product in one go: of floats in oneDNN, of the others in Eigen.
template <typename T>
Status GemmWhole(const GemmShape& s, const T* a, const T* b, T* c) {
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
  return OkStatus();
}
Status GemmWhole(const GemmShape& s, const float* a, const float* b, float* c) {
  return GemmFloat(s, a, b, c);
}

/// The product of float or of a type that Eigen multiplies, made in blocks of rows until the kernel
/// is interrupted. Of a transposed matrix they are copied together: oneDNN multiplies what lies
/// apart in another, slower way, with other rounding.
template <typename T>
Status InBlocks(const GemmShape& s, double block_work, const T* a, const T* b, T* c) {
  const int64_t rows = RowsOfBlock(s, block_work);
  if (rows >= s.m) return GemmWhole(s, a, b, c);
  CountedVector<T> columns(s.transpose_a ? rows * s.k : 0);
  GemmShape block = s;
  for (int64_t first = 0; first < s.m && !Interrupted(); first += block.m) {
    block.m = std::min(rows, s.m - first);
    const T* part = a + first * s.k;
    if (s.transpose_a) {
      part = columns.data();
      for (int64_t p = 0; p < s.k; ++p) {
        std::copy_n(a + p * s.m + first, block.m, columns.data() + p * block.m);
      }
    }
    TENON_RETURN_IF_ERROR(GemmWhole(block, part, b, c + first * s.n));
  }
  return OkStatus();
}

/// Row by row, so that the compiler vectorises over the columns of b. Integers are too rare in
/// products to be worth more.
template <typename T>
void GemmInteger(const GemmShape& s, const T* a, const T* b, T* c) {
  CountedVector<T> untransposed;
  if (s.transpose_b) {
    untransposed.resize(s.k * s.n);
    SerialFor(s.n, 2.0 * static_cast<double>(s.k), [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        for (int64_t p = 0; p < s.k; ++p) untransposed[p * s.n + j] = b[j * s.k + p];
      }
    });
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

/// 16-bit floats as floats.
template <typename T>
StatusOr<Tensor> Widened(const T* x, int64_t n) {
  TENON_ASSIGN_OR_RETURN(Tensor wide, Tensor::Allocate(CpuAllocator(), DType::kFloat, {n}));
  float* to = wide.data<float>();
  ParallelFor(n, kWidenNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(x[i]);
  });
  return wide;
}

template <typename T>
Status GemmSmallFloat(const GemmShape& s, const T* a, const T* b, T* c, double block_work) {
  TENON_ASSIGN_OR_RETURN(const Tensor x, Widened(a, s.m * s.k));
  TENON_ASSIGN_OR_RETURN(const Tensor y, Widened(b, s.k * s.n));
  TENON_ASSIGN_OR_RETURN(Tensor z, Tensor::Allocate(CpuAllocator(), DType::kFloat, {s.m * s.n}));
  float* from = z.data<float>();
  TENON_RETURN_IF_ERROR(InBlocks(s, block_work, x.data<float>(), y.data<float>(), from));
  ParallelFor(s.m * s.n, kWidenNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) c[i] = T(from[i]);
  });
  return OkStatus();
}

}  // namespace

Status Gemm(DType type, const GemmShape& shape, const void* a, const void* b, void* c,
            double block_work) {
  if (shape.m == 0 || shape.n == 0) return OkStatus();
  if (shape.k == 0) {
    std::memset(c, 0, shape.m * shape.n * SizeOf(type));
    return OkStatus();
  }
  return DispatchStatus(type, NumericTypes(), [&]<typename T>(T) {
    const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    T* z = static_cast<T*>(c);
    if constexpr (!std::is_same_v<ComputeType<T>, T>) {
      return GemmSmallFloat(shape, x, y, z, block_work);
    } else if constexpr (std::is_integral_v<T>) {
      GemmInteger(shape, x, y, z);
    } else {
      return InBlocks(shape, block_work, x, y, z);
    }
  });
}

}  // namespace tenon
