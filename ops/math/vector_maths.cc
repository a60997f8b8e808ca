// SPDX-License-Identifier: Apache-2.0
#include "ops/math/vector_maths.h"

#include <cmath>
#include <cstring>

// glibc's vector library has these functions under the names of the x86-64 vector function ABI:
// _ZGVe = AVX-512, _ZGVd = AVX2. They are called by name because compilers only find them by
// themselves under -ffast-math (gcc) or for some of them (clang). Elsewhere: plain loops.
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__AVX512F__)
#define TENON_VECTOR_NAME(NAME) _ZGVeN16v_##NAME
#define TENON_VECTOR_BYTES 64
#elif defined(__GLIBC__) && defined(__x86_64__) && defined(__AVX2__)
#define TENON_VECTOR_NAME(NAME) _ZGVdN8v_##NAME
#define TENON_VECTOR_BYTES 32
#endif

namespace tenon {
namespace {

#if defined(TENON_VECTOR_BYTES)
using Vector = float __attribute__((vector_size(TENON_VECTOR_BYTES)));
#define TENON_VECTOR_FUNCTION(NAME, FUNCTION)            \
  extern "C" Vector TENON_VECTOR_NAME(FUNCTION)(Vector); \
  inline Vector NAME(Vector x) { return TENON_VECTOR_NAME(FUNCTION)(x); }

/// a where the mask is set, else b.
template <typename Mask>
Vector Choose(Mask mask, Vector a, Vector b) {
  return mask ? a : b;
}
#else
using Vector = float;
#define TENON_VECTOR_FUNCTION(NAME, FUNCTION) \
  inline Vector NAME(Vector x) { return std::FUNCTION(x); }

Vector Choose(bool mask, Vector a, Vector b) { return mask ? a : b; }
#endif

TENON_VECTOR_FUNCTION(ExpV, expf)
TENON_VECTOR_FUNCTION(Expm1V, expm1f)
TENON_VECTOR_FUNCTION(LogV, logf)
TENON_VECTOR_FUNCTION(Log1pV, log1pf)
TENON_VECTOR_FUNCTION(SinV, sinf)
TENON_VECTOR_FUNCTION(CosV, cosf)
TENON_VECTOR_FUNCTION(TanV, tanf)
TENON_VECTOR_FUNCTION(TanhV, tanhf)
TENON_VECTOR_FUNCTION(ErfV, erff)

template <typename Fn>
void Map(const float* x, float* y, int64_t n, Fn fn) {
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(float);
  Vector v;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    std::memcpy(&v, x + i, sizeof(v));
    v = fn(v);
    std::memcpy(y + i, &v, sizeof(v));
  }
  if (i < n) {
    v = Vector{};
    std::memcpy(&v, x + i, (n - i) * sizeof(float));
    v = fn(v);
    std::memcpy(y + i, &v, (n - i) * sizeof(float));
  }
}

}  // namespace

void VectorExp(const float* x, float* y, int64_t n) { Map(x, y, n, ExpV); }
void VectorExpm1(const float* x, float* y, int64_t n) { Map(x, y, n, Expm1V); }
void VectorLog(const float* x, float* y, int64_t n) { Map(x, y, n, LogV); }
void VectorLog1p(const float* x, float* y, int64_t n) { Map(x, y, n, Log1pV); }
void VectorSin(const float* x, float* y, int64_t n) { Map(x, y, n, SinV); }
void VectorCos(const float* x, float* y, int64_t n) { Map(x, y, n, CosV); }
void VectorTan(const float* x, float* y, int64_t n) { Map(x, y, n, TanV); }
void VectorTanh(const float* x, float* y, int64_t n) { Map(x, y, n, TanhV); }
void VectorErf(const float* x, float* y, int64_t n) { Map(x, y, n, ErfV); }

void VectorSigmoid(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Vector v) { return 1.0f / (1.0f + ExpV(-v)); });
}

void VectorSoftplus(const float* x, float* y, int64_t n) {
  // max(x, 0) + log1p(exp(-|x|)): the exponential never exceeds 1. NaN passes both choices.
  Map(x, y, n, [](Vector v) {
    const Vector zero{};
    return Choose(v < zero, zero, v) + Log1pV(ExpV(Choose(v < zero, v, -v)));
  });
}

void VectorElu(const float* x, float* y, int64_t n, float positive, float negative) {
  Map(x, y, n, [=](Vector v) {
    const Vector zero{};
    return Choose(v < zero, negative * Expm1V(v), positive * v);
  });
}

}  // namespace tenon
