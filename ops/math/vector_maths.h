// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Transcendental functions of many floats at once: y[i] = f(x[i]) for i < n, where y may be x.
// Within 4 units in the last place; NaN, infinities and denormals as in the C library.

namespace tenon {

void VectorExp(const float* x, float* y, int64_t n);
void VectorExpm1(const float* x, float* y, int64_t n);
void VectorLog(const float* x, float* y, int64_t n);
void VectorLog1p(const float* x, float* y, int64_t n);
void VectorSin(const float* x, float* y, int64_t n);
void VectorCos(const float* x, float* y, int64_t n);
void VectorTan(const float* x, float* y, int64_t n);
void VectorTanh(const float* x, float* y, int64_t n);
void VectorErf(const float* x, float* y, int64_t n);
/// 1 / (1 + exp(-x))
void VectorSigmoid(const float* x, float* y, int64_t n);
/// log(1 + exp(x)), without overflow
void VectorSoftplus(const float* x, float* y, int64_t n);
/// x >= 0 ? positive * x : negative * (exp(x) - 1)
void VectorElu(const float* x, float* y, int64_t n, float positive, float negative);

}  // namespace tenon
