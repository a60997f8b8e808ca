// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include "core/tensor/tensor.h"
#include "ops/linalg/matrices.h"

// Matrices of tensors as Eigen sees them. Only for the .cc files of this folder: Eigen takes long
// to compile.

namespace tenon {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using RealOf = typename Eigen::NumTraits<T>::Real;

/// Matrix `i` of those in `t`.
template <typename T>
Eigen::Map<const Matrix<T>> MatrixAt(const Tensor& t, const Matrices& m, int64_t i) {
  return {t.data<T>() + i * m.size(), m.rows, m.columns};
}
/// The same of a result, of `rows` rows and `columns` columns each.
template <typename T>
Eigen::Map<Matrix<T>> MatrixAt(Tensor* t, int64_t i, int64_t rows, int64_t columns) {
  return {t->data<T>() + i * rows * columns, rows, columns};
}

/// Whether the triangular matrix that the LU decomposition `lu` ends in has no 0 on its diagonal.
template <typename Lu>
bool IsInvertible(const Lu& lu) {
  return lu.matrixLU().rows() == 0 || lu.matrixLU().diagonal().cwiseAbs().minCoeff() > 0;
}

}  // namespace tenon
