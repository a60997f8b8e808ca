// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <limits>

#include "core/parallel.h"
#include "ops/composition.h"
#include "ops/maths.h"
#include "ops/math/register.h"

namespace tenon {
namespace {

/// A float as an integer, rounded towards zero. Where the result does not fit, what TensorFlow gives
/// on x86: conversion to int32 (int64 for the wide types) gives its lowest value, and narrower types
/// take the low bits of that.
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
  } else if constexpr (std::is_same_v<To, bool> && kIsComplex<From>) {
    return from.real() != 0;
  } else if constexpr (std::is_same_v<To, bool>) {
    return from != From(0);
  } else if constexpr (kIsComplex<To> && kIsComplex<From>) {
    return static_cast<To>(from);
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(from));
  } else if constexpr (kIsComplex<From>) {
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
  Dispatch(from, PlainTypes(), [&](auto a) {
    Dispatch(to, PlainTypes(), [&](auto b) { loop = &Loop<decltype(a), decltype(b)>; });
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
  switch (t) {
    case DType::kBFloat16: return 7;
    case DType::kHalf: return 10;
    case DType::kFloat: return 23;
    default: return 52;
  }
}

class CastCpu final : public Kernel {
 public:
  explicit CastCpu(KernelConstruction& c)
      : Kernel(c),
        from_(c.Attr<DType>("SrcT")),
        to_(c.Attr<DType>("DstT")),
        truncate_(c.Attr<bool>("Truncate") && IsFloating(from_) && IsFloating(to_) &&
                  MantissaBits(to_) < MantissaBits(from_)),
        loop_(LoopFor(from_, to_)) {
    if (loop_ == nullptr && from_ != to_) {
      c.Fail(Unimplemented("Cast ", ToString(from_), " to ", ToString(to_), " is not supported"));
    }
  }

  Status Compute(KernelContext& ctx) const override {
    if (from_ == to_) {
      ctx.set_output(0, ctx.input(0));
      return OkStatus();
    }
    Tensor x = ctx.input(0);
    if (truncate_) {
      TENON_ASSIGN_OR_RETURN(x, x.Copy());
      const int bits = MantissaBits(from_) - MantissaBits(to_);
      if (from_ == DType::kFloat) ClearLowBits<float, uint32_t>(&x, bits);
      if (from_ == DType::kDouble) ClearLowBits<double, uint64_t>(&x, bits);
    }
    TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
    const char* in = static_cast<const char*>(x.raw_data());
    char* out = static_cast<char*>(y->raw_data());
    const int64_t in_size = SizeOf(from_), out_size = SizeOf(to_);
    ParallelFor(x.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
      loop_(in + begin * in_size, out + begin * out_size, end - begin);
    });
    return OkStatus();
  }

 private:
  const DType from_, to_;
  const bool truncate_;
  const CastLoop loop_;
};

/// Flows between the types that have derivatives only.
void CastGrad(GradContext& g) {
  const DType from = Output(g.in(0)).dtype(), to = g.dy(0).dtype();
  const auto differentiable = [](DType t) { return IsFloating(t) || IsComplex(t); };
  if (differentiable(from) && differentiable(to)) g.dx(0) = Cast(g.dy(0), from);
}

}  // namespace

void RegisterCast(OpRegistry& ops) {
  const DTypeVector types = DTypesOf(PlainTypes());
  ops.Get("Cast")
      .Shape(UnchangedShape).Grad(CastGrad)
      .Kernel<CastCpu>(kCpu, {{{"SrcT", types}, {"DstT", types}}, {}})
      .Example({Shape{2, 3}})
      .Example({Shape{2, 3}}, {{"SrcT", DType::kDouble}, {"DstT", DType::kDouble}})
      .Example({Shape{4}}, {{"Truncate", true}});
}

}  // namespace tenon
