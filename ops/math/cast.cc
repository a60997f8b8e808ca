// SPDX-License-Identifier: Apache-2.0
#include "ops/math/cast.h"

#include <bit>

#include "core/base/parallel.h"
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/elements.h"
#include "ops/math/convert.h"
#include "ops/math/float8.h"

namespace tenon {
namespace {

using CastTypes = decltype(ConcatTypes(PlainTypes(), Float8Types()));
using CastLoop = void (*)(const void* x, void* y, int64_t n);

template <typename T>
inline constexpr bool kIsFloat8 = false;
template <>
inline constexpr bool kIsFloat8<Float8E5M2> = true;
template <>
inline constexpr bool kIsFloat8<Float8E4M3FN> = true;

template <typename To, typename From>
To ConvertAny(From from) {
  if constexpr (kIsFloat8<From>) {
    return ConvertAny<To>(static_cast<float>(from));
  } else if constexpr (kIsFloat8<To>) {
    return To(Convert<double>(from));
  } else {
    return Convert<To>(from);
  }
}

/// The type whose elements a quantised type's are; other types themselves.
DType StoredAs(DType t) {
  switch (t) {
    case DType::kQInt8:
      return DType::kInt8;
    case DType::kQUInt8:
      return DType::kUInt8;
    case DType::kQInt16:
      return DType::kInt16;
    case DType::kQUInt16:
      return DType::kUInt16;
    case DType::kQInt32:
      return DType::kInt32;
    default:
      return t;
  }
}

template <typename From, typename To>
void Loop(const void* x, void* y, int64_t n) {
  const From* in = static_cast<const From*>(x);
  To* out = static_cast<To*>(y);
  TENON_SIMD
  for (int64_t i = 0; i < n; ++i) out[i] = ConvertAny<To>(in[i]);
}

CastLoop LoopFor(DType from, DType to) {
  CastLoop loop = nullptr;
  Dispatch(StoredAs(from), CastTypes(), [&]<typename From>(From) {
    Dispatch(StoredAs(to), CastTypes(), [&]<typename To>(To) { loop = &Loop<From, To>; });
  });
  return loop;
}

/// Clears the bits of the mantissa that `to` has no room for, so that the conversion truncates.
template <typename T, typename Bits>
void ClearLowBits(Tensor* x, int bits) {
  const Bits mask = static_cast<Bits>(~((Bits{1} << bits) - 1));
  for (T& v : x->flat<T>()) {
    v = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(v) & mask));
  }
}

void ConvertInto(const Tensor& x, CastLoop loop, Tensor* y) {
  ParallelFor(x.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
    loop(ElementAt(x, begin), ElementAt(*y, begin), end - begin);
  });
}

Status CastKernel(KernelContext& ctx, DType from, DType to, bool truncate) {
  Tensor x = ctx.input(0);
  if (from == to) return ctx.Return(std::move(x));
  const int lost_bits = truncate ? LostBits(from, to) : 0;
  if (lost_bits > 0) {
    TENON_ASSIGN_OR_RETURN(x, x.Copy());
    if (from == DType::kFloat) ClearLowBits<float, uint32_t>(&x, lost_bits);
    if (from == DType::kDouble) ClearLowBits<double, uint64_t>(&x, lost_bits);
    if (SizeOf(to) == 1) {  // From half to bfloat16 nothing is cleared, as in TensorFlow.
      if (from == DType::kHalf) ClearLowBits<Half, uint16_t>(&x, lost_bits);
      if (from == DType::kBFloat16) ClearLowBits<BFloat16, uint16_t>(&x, lost_bits);
    }
  }
  TENON_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.shape()));
  ConvertInto(x, LoopFor(from, to), y);
  return OkStatus();
}

/// Flows between the types that have derivatives only.
void CastGrad(GradContext& g) {
  const DType from = g.in(0).dtype(), to = g.dy(0).dtype();
  const auto differentiable = [](DType t) { return IsFloating(t) || IsComplex(t); };
  if (differentiable(from) && differentiable(to)) g.dx(0) = Cast(g.dy(0), from);
}

}  // namespace

StatusOr<Tensor> ConvertedTo(DType type, const Tensor& x, KernelContext& ctx) {
  if (x.dtype() == type) return x;
  const CastLoop loop = LoopFor(x.dtype(), type);
  if (loop == nullptr) return InvalidArgument("elements of ", x.dtype(), " cannot be ", type);
  TENON_ASSIGN_OR_RETURN(Tensor y, ctx.AllocateTemp(type, x.shape()));
  ConvertInto(x, loop, &y);
  return y;
}

void RegisterCast(OpRegistry& ops) {
  DTypeVector types = DTypesOf(CastTypes());
  for (int number = 1; number < kNumDTypes; ++number) {
    const DType t = static_cast<DType>(number);
    if (StoredAs(t) != t) types.push_back(t);
  }
  ops.Add("Cast", UnchangedShape, CastKernel,
          {.types = {{"SrcT", types}, {"DstT", types}}, .attrs = {"SrcT", "DstT", "Truncate"}})
      .Grad(CastGrad)
      .Example({Shape{2, 3}})
      .Example({Shape{2, 3}}, {{"SrcT", DType::kDouble}, {"DstT", DType::kDouble}})
      .Example({Shape{4}}, {{"Truncate", true}});
}

}  // namespace tenon
