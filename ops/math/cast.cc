// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <limits>

#include "core/op_registry.h"
#include "core/parallel.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/maths.h"

namespace tenon {
namespace {

/// A float as an integer, rounded towards zero. Where the result does not fit, what TensorFlow
/// gives on x86: conversion to int32 (int64 for the wide types) gives its lowest value, and
/// narrower types take the low bits of that.
template <typename To, typename From>
To ToInteger(From x) {
  constexpr From kTwo31 = static_cast<From>(2147483648.0);
  constexpr From kTwo63 = static_cast<From>(9223372036854775808.0);
  if constexpr (std::is_same_v<To, uint64_t>) {
    const bool high = x >= kTwo63;
    const From y = high ? x - kTwo63 : x;
    if (!(y >= -kTwo63 && y < kTwo63)) return uint64_t{1} << 63;
    return static_cast<uint64_t>(static_cast<int64_t>(y)) + (high ? uint64_t{1} << 63 : 0);
  } else if constexpr (std::is_same_v<To, uint32_t>) {
    return x > -kTwo31 - 1 && x < 2 * kTwo31 ? static_cast<uint32_t>(static_cast<int64_t>(x))
                                             : uint32_t{1} << 31;
  } else if constexpr (sizeof(To) == 8) {
    return static_cast<To>(x >= -kTwo63 && x < kTwo63 ? static_cast<int64_t>(x)
                                                      : std::numeric_limits<int64_t>::min());
  } else {
    return static_cast<To>(x > -kTwo31 - 1 && x < kTwo31 ? static_cast<int32_t>(x)
                                                         : std::numeric_limits<int32_t>::min());
  }
}

template <typename To, typename From>
To Convert(From from) {
  if constexpr (std::is_same_v<ComputeType<From>, float> && !std::is_same_v<From, float>) {
    return Convert<To>(static_cast<float>(from));
  } else if constexpr (std::is_same_v<ComputeType<To>, float> && !std::is_same_v<To, float>) {
    return To(Convert<float>(from));
  } else if constexpr (std::is_same_v<To, bool> && !kIsComplex<From>) {
    return from != From(0);
  } else if constexpr (kIsComplex<To> && !kIsComplex<From>) {
    return To(static_cast<typename To::value_type>(from));
  } else if constexpr (kIsComplex<From> && !kIsComplex<To>) {
    return Convert<To>(from.real());
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return ToInteger<To>(from);
  } else {
    return static_cast<To>(from);
  }
}

using CastLoop = void (*)(const void* x, void* y, int64_t n);

template <typename From, typename To>
void Loop(const void* x, void* y, int64_t n) {
  const From* in = static_cast<const From*>(x);
  To* out = static_cast<To*>(y);
  TENON_SIMD
  for (int64_t i = 0; i < n; ++i) out[i] = Convert<To>(in[i]);
}

CastLoop LoopFor(DType from, DType to) {
  CastLoop loop = nullptr;
  Dispatch(from, PlainTypes(), [&]<typename From>(From) {
    Dispatch(to, PlainTypes(), [&]<typename To>(To) { loop = &Loop<From, To>; });
  });
  return loop;
}

/// Clears the bits of the mantissa that `to` has no room for, so that the conversion truncates.
template <typename T, typename Bits>
void ClearLowBits(Tensor* x, int bits) {
  const Bits mask = ~((Bits{1} << bits) - 1);
  for (T& v : x->flat<T>()) v = std::bit_cast<T>(std::bit_cast<Bits>(v) & mask);
}

int MantissaBits(DType t) {
  if (t == DType::kBFloat16) return 7;
  if (t == DType::kHalf) return 10;
  return t == DType::kFloat ? 23 : 52;
}

Status CastKernel(KernelContext& ctx, DType from, DType to, bool truncate) {
  Tensor x = ctx.input(0);
  if (from == to) return ctx.Return(std::move(x));
  const int lost_bits = MantissaBits(from) - MantissaBits(to);
  if (truncate && IsFloating(from) && IsFloating(to) && lost_bits > 0) {
    TENON_ASSIGN_OR_RETURN(x, x.Copy());
    if (from == DType::kFloat) ClearLowBits<float, uint32_t>(&x, lost_bits);
    if (from == DType::kDouble) ClearLowBits<double, uint64_t>(&x, lost_bits);
  }
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  const CastLoop loop = LoopFor(from, to);
  ParallelFor(x.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
    loop(ElementAt(x, begin), ElementAt(*y, begin), end - begin);
  });
  return OkStatus();
}

/// Flows between the types that have derivatives only.
void CastGrad(GradContext& g) {
  const DType from = g.in(0).dtype(), to = g.dy(0).dtype();
  const auto differentiable = [](DType t) { return IsFloating(t) || IsComplex(t); };
  if (differentiable(from) && differentiable(to)) g.dx(0) = Cast(g.dy(0), from);
}

}  // namespace

void RegisterCast(OpRegistry& ops) {
  const DTypeVector types = DTypesOf(PlainTypes());
  ops.Add("Cast", UnchangedShape, CastKernel,
          {.types = {{"SrcT", types}, {"DstT", types}}, .attrs = {"SrcT", "DstT", "Truncate"}})
      .Grad(CastGrad)
      .Example({Shape{2, 3}})
      .Example({Shape{2, 3}}, {{"SrcT", DType::kDouble}, {"DstT", DType::kDouble}})
      .Example({Shape{4}}, {{"Truncate", true}});
}

}  // namespace tenon
