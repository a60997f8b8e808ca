// SPDX-License-Identifier: Apache-2.0
#include "ops/math/vector_maths.h"

#include <cmath>
#include <cstring>
#include <type_traits>

// glibc's vector library has these functions under the names of the x86-64 vector function ABI:
// _ZGVe = AVX-512, _ZGVd = AVX2. They are called by name because compilers only find them by
// themselves under -ffast-math (gcc) or for some of them (clang). Elsewhere: plain loops.
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__AVX512F__)
#define TENON_FLOATS_NAME(NAME) _ZGVeN16v_##NAME
#define TENON_DOUBLES_NAME(NAME) _ZGVeN8v_##NAME
#define TENON_VECTOR_BYTES 64
#elif defined(__GLIBC__) && defined(__x86_64__) && defined(__AVX2__)
#define TENON_FLOATS_NAME(NAME) _ZGVdN8v_##NAME
#define TENON_DOUBLES_NAME(NAME) _ZGVdN4v_##NAME
#define TENON_VECTOR_BYTES 32
#endif

namespace tenon {
namespace {

#if defined(TENON_VECTOR_BYTES)
using Floats = float __attribute__((vector_size(TENON_VECTOR_BYTES)));
using Doubles = double __attribute__((vector_size(TENON_VECTOR_BYTES)));
#define TENON_VECTOR_FUNCTION(NAME, FUNCTION)                                \
  extern "C" Floats TENON_FLOATS_NAME(FUNCTION##f)(Floats);                  \
  extern "C" Doubles TENON_DOUBLES_NAME(FUNCTION)(Doubles);                  \
  inline Floats NAME(Floats x) { return TENON_FLOATS_NAME(FUNCTION##f)(x); } \
  inline Doubles NAME(Doubles x) { return TENON_DOUBLES_NAME(FUNCTION)(x); }

/// a where the mask is set, else b.
template <typename Mask, typename Vector>
Vector Choose(Mask mask, Vector a, Vector b) {
  return mask ? a : b;
}
#else
using Floats = float;
using Doubles = double;
#define TENON_VECTOR_FUNCTION(NAME, FUNCTION)               \
  inline Floats NAME(Floats x) { return std::FUNCTION(x); } \
  inline Doubles NAME(Doubles x) { return std::FUNCTION(x); }

template <typename Vector>
Vector Choose(bool mask, Vector a, Vector b) {
  return mask ? a : b;
}
#endif

TENON_VECTOR_FUNCTION(ExpV, exp)
TENON_VECTOR_FUNCTION(Expm1V, expm1)
TENON_VECTOR_FUNCTION(LogV, log)
TENON_VECTOR_FUNCTION(Log1pV, log1p)
TENON_VECTOR_FUNCTION(SinV, sin)
TENON_VECTOR_FUNCTION(CosV, cos)
TENON_VECTOR_FUNCTION(TanV, tan)
TENON_VECTOR_FUNCTION(TanhV, tanh)
TENON_VECTOR_FUNCTION(ErfV, erf)

template <typename T, typename Fn>
void Map(const T* x, T* y, int64_t n, Fn fn) {
  using Vector = std::conditional_t<std::is_same_v<T, float>, Floats, Doubles>;
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(T);
  Vector v;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    std::memcpy(&v, x + i, sizeof(v));
    v = fn(v);
    std::memcpy(y + i, &v, sizeof(v));
  }
  if (i < n) {
    v = Vector{};
    std::memcpy(&v, x + i, (n - i) * sizeof(T));
    v = fn(v);
    std::memcpy(y + i, &v, (n - i) * sizeof(T));
  }
}

constexpr auto kSigmoid = [](auto v) { return 1 / (1 + ExpV(-v)); };

/// max(x, 0) + log1p(exp(-|x|)): the exponential never exceeds 1. NaN passes both choices.
constexpr auto kSoftplus = [](auto v) {
  const decltype(v) zero{};
  return Choose(v < zero, zero, v) + Log1pV(ExpV(Choose(v < zero, v, -v)));
};

}  // namespace

#define TENON_LOOPS(NAME, FUNCTION)                      \
  void NAME(const float* x, float* y, int64_t n) {       \
    Map(x, y, n, [](Floats v) { return FUNCTION(v); });  \
  }                                                      \
  void NAME(const double* x, double* y, int64_t n) {     \
    Map(x, y, n, [](Doubles v) { return FUNCTION(v); }); \
  }

TENON_LOOPS(VectorExp, ExpV)
TENON_LOOPS(VectorExpm1, Expm1V)
TENON_LOOPS(VectorLog, LogV)
TENON_LOOPS(VectorLog1p, Log1pV)
TENON_LOOPS(VectorSin, SinV)
TENON_LOOPS(VectorCos, CosV)
TENON_LOOPS(VectorTan, TanV)
TENON_LOOPS(VectorTanh, TanhV)
TENON_LOOPS(VectorErf, ErfV)
TENON_LOOPS(VectorSigmoid, kSigmoid)
TENON_LOOPS(VectorSoftplus, kSoftplus)

void VectorElu(const float* x, float* y, int64_t n, float positive, float negative) {
  Map(x, y, n, [=](Floats v) {
    const Floats zero{};
    return Choose(v < zero, negative * Expm1V(v), positive * v);
  });
}

}  // namespace tenon
