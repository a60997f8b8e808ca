// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/half.h"

namespace tenon {

class TString;
struct ResourceHandle;
struct Variant;

/// The element type of a tensor. Numbers are those of TensorFlow's DataType (types.proto). A
/// reference type (the type of a ref variable's output) is its base plus 100, as there.
enum class DType : uint8_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQInt8 = 11,
  kQUInt8 = 12,
  kQInt32 = 13,
  kBFloat16 = 14,
  kQInt16 = 15,
  kQUInt16 = 16,
  kUInt16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUInt32 = 22,
  kUInt64 = 23,
  kFloat8E5M2 = 24,
  kFloat8E4M3FN = 25,
  kFloat8E4M3FNUZ = 26,
  kFloat8E4M3B11FNUZ = 27,
  kFloat8E5M2FNUZ = 28,
  kInt4 = 29,
  kUInt4 = 30,
  kInt2 = 31,
  kUInt2 = 32,
};
inline constexpr int kNumDTypes = 33;

using DTypeVector = std::vector<DType>;

constexpr bool IsRef(DType t) { return static_cast<int>(t) > 100; }
constexpr DType BaseType(DType t) {
  return IsRef(t) ? static_cast<DType>(static_cast<int>(t) - 100) : t;
}
constexpr DType MakeRef(DType t) {
  return IsRef(t) ? t : static_cast<DType>(static_cast<int>(t) + 100);
}

/// Bytes of one element of `t` in memory and on the wire; 0 for string, resource, variant (elements
/// are objects) and invalid. The sub-byte types take one byte an element, as in TensorFlow.
size_t SizeOf(DType t);

/// True for the types whose elements are plain bytes (everything but string, resource, variant).
inline bool IsPlain(DType t) { return SizeOf(t) != 0; }
bool IsFloating(DType t);
bool IsInteger(DType t);
bool IsComplex(DType t);

/// "float", "int32", "float_ref"; the names of TensorFlow's messages. Unknown numbers: "dtype(77)".
std::string ToString(DType t);
/// The reverse, for the short names and for "DT_FLOAT", "float32", "float16", "float64".
std::optional<DType> ParseDType(std::string_view name);
/// Checks a number from outside: a known type or its reference form.
std::optional<DType> DTypeFromNumber(int number);

template <typename T>
struct DTypeTraits {
  static constexpr DType kType = DType::kInvalid;
};
#define TENON_DTYPE_TRAITS(CPP, ENUM)           \
  template <>                                   \
  struct DTypeTraits<CPP> {                     \
    static constexpr DType kType = DType::ENUM; \
  };
TENON_DTYPE_TRAITS(float, kFloat)
TENON_DTYPE_TRAITS(double, kDouble)
TENON_DTYPE_TRAITS(int32_t, kInt32)
TENON_DTYPE_TRAITS(uint8_t, kUInt8)
TENON_DTYPE_TRAITS(int16_t, kInt16)
TENON_DTYPE_TRAITS(int8_t, kInt8)
TENON_DTYPE_TRAITS(TString, kString)
TENON_DTYPE_TRAITS(std::complex<float>, kComplex64)
TENON_DTYPE_TRAITS(int64_t, kInt64)
TENON_DTYPE_TRAITS(bool, kBool)
TENON_DTYPE_TRAITS(BFloat16, kBFloat16)
TENON_DTYPE_TRAITS(uint16_t, kUInt16)
TENON_DTYPE_TRAITS(std::complex<double>, kComplex128)
TENON_DTYPE_TRAITS(Half, kHalf)
TENON_DTYPE_TRAITS(ResourceHandle, kResource)
TENON_DTYPE_TRAITS(Variant, kVariant)
TENON_DTYPE_TRAITS(uint32_t, kUInt32)
TENON_DTYPE_TRAITS(uint64_t, kUInt64)
#undef TENON_DTYPE_TRAITS

template <typename T>
inline constexpr DType kDTypeOf = DTypeTraits<T>::kType;

/// A list of C++ element types to dispatch over.
template <typename... Ts>
struct TypeList {};

template <typename... As, typename... Bs>
TypeList<As..., Bs...> ConcatTypes(TypeList<As...>, TypeList<Bs...>);

using FloatTypes = TypeList<float, double, Half, BFloat16>;
using IntTypes = TypeList<int32_t, int64_t, int8_t, int16_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using ComplexTypes = TypeList<std::complex<float>, std::complex<double>>;
using RealTypes = decltype(ConcatTypes(FloatTypes(), IntTypes()));
using NumericTypes = decltype(ConcatTypes(RealTypes(), ComplexTypes()));
/// Every type with plain bytes that C++ code computes with.
using PlainTypes = decltype(ConcatTypes(NumericTypes(), TypeList<bool>()));

/// The dtypes of a TypeList at run time.
template <typename... Ts>
DTypeVector DTypesOf(TypeList<Ts...>) {
  return {kDTypeOf<Ts>...};
}

/// Calls `fn(T())` with the C++ type T of `list` whose dtype is `type`; false when none is.
///
///   if (!Dispatch(t.dtype(), FloatTypes(), [&](auto zero) { using T = decltype(zero); ... }))
///     return Unimplemented(...);
template <typename... Ts, typename Fn>
bool Dispatch(DType type, TypeList<Ts...>, Fn&& fn) {
  return ((type == kDTypeOf<Ts> ? (fn(Ts()), true) : false) || ...);
}

}  // namespace tenon
