// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>

#include "absl/functional/function_ref.h"

// Discrete Fourier transforms of lines of an array; T is float or double. Forward: y[k] = sum over
// j of x[j] exp(-2 pi i j k / n); inverse: the sign of the exponent changes and the sum is divided
// by n. Lines are transformed by several threads.

namespace tenon {

/// Transforms, in place, the lines along the middle dimension of [outer, n, inner].
template <typename T>
void TransformLines(std::complex<T>* data, int64_t outer, int64_t n, int64_t inner, bool inverse);

/// For each of `count` lines: the first n / 2 + 1 elements, of which the others follow, of the
/// transform of the n numbers that `line(i)` points to become line i of `out`.
template <typename T>
void TransformRealLines(absl::FunctionRef<const T*(int64_t i)> line, int64_t count, int64_t n,
                        std::complex<T>* out);

/// The reverse: lines of n / 2 + 1 elements become lines of n numbers. The imaginary parts of the
/// first and, of an even n, the last element are not read.
template <typename T>
void InvertRealLines(const std::complex<T>* lines, int64_t count, int64_t n, T* out);

}  // namespace tenon
