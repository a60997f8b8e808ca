// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Transcendental functions of many floats or doubles at once: y[i] = f(x[i]) for i < n, where y may
// be x. Within 4 units in the last place; NaN, infinities and denormals as in the C library.

namespace tenon {

using FloatLoop = void(const float* x, float* y, int64_t n);
using DoubleLoop = void(const double* x, double* y, int64_t n);

FloatLoop VectorExp, VectorExpm1, VectorLog, VectorLog1p;
FloatLoop VectorSin, VectorCos, VectorTan, VectorTanh, VectorErf;
DoubleLoop VectorExp, VectorExpm1, VectorLog, VectorLog1p;
DoubleLoop VectorSin, VectorCos, VectorTan, VectorTanh, VectorErf;
/// 1 / (1 + exp(-x)); 0 in place of denormals
FloatLoop VectorSigmoid;
DoubleLoop VectorSigmoid;
/// log(1 + exp(x)), without overflow
FloatLoop VectorSoftplus;
DoubleLoop VectorSoftplus;
/// x >= 0 ? positive * x : negative * (exp(x) - 1)
void VectorElu(const float* x, float* y, int64_t n, float positive, float negative);

}  // namespace tenon
