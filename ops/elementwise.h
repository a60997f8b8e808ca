// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "core/build/building.h"
#include "core/op/op_registry.h"
#include "ops/maths.h"

// The machinery of elementwise ops: one struct is a whole op. A family's header writes the structs
// and lists them once, for the .cc with their gradients and for the .cu (ops/cuda/elementwise.cuh).
//
//   struct SoftsignOp : Elementwise<"Softsign", FloatTypes> {
//     TENON_HD static auto Apply(auto x) { return x / (1 + Abs(x)); }
//     static Output Grad(Output x, Output y, Output dy);
//   };
//   using ActivationOps = TypeList<SoftsignOp>;
//
//   void RegisterActivations(OpRegistry& ops) { RegisterUnaryList(ops, ActivationOps()); }
//   void RegisterCudaActivations(OpRegistry& ops) { cuda::AddUnaryList(ops, ActivationOps()); }
//
// Required: kName and Types (the element types of its kernels), which Elementwise gives, and Apply
// (its result is made a T, or is bool for an op with a bool result). Optional members:
//   OfSecond         (binary) what Apply gets for y, rounded to the element type
//   kDomain          where tests sample its inputs
//   Grad             how it is differentiated
//   Result<T>        the element type of its results for elements of T, when that is another one
//   kFloatLoop       a faster loop for float: void(const float* x, float* y, int64_t n)
//   kDoubleLoop      the same for double
//   kCost            nanoseconds an element, roughly, where it is more than memory takes; with a
//                    kFloatLoop a quarter of it for float, with a kDoubleLoop a third for double
//   Valid, kError    (binary) elements for which Valid(x, y) is false fail with InvalidArgument
// A binary Grad(x, y, z, dz) gives a pair of gradients of the broadcast shape; the machinery sums
// them to the operands'.

namespace tenon {

/// A text as an argument of a template.
template <size_t kSize>
struct OpName {
  char text[kSize];
  constexpr OpName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }  // NOLINT
};

/// What every elementwise op derives from.
template <OpName kOpName, typename SomeTypes, typename MoreTypes = TypeList<>>
struct Elementwise {
  static constexpr std::string_view kName = kOpName.text;
  using Types = decltype(ConcatTypes(SomeTypes(), MoreTypes()));
};

using UnaryLoop = void (*)(const void* x, void* y, int64_t n);
/// Operands advance by x_step and y_step (0 or 1) elements. False when an element is not valid.
using BinaryLoop = bool (*)(const void* x, int64_t x_step, const void* y, int64_t y_step, void* z,
                            int64_t n);

/// The gradients of both operands.
using GradientPair = std::pair<Output, Output>;

/// What the templates below collect of an op, so that the rest is compiled once.
template <typename Loop, typename Gradient>
struct ElementwiseInfo {
  std::string_view name;
  DTypeVector types;
  /// The types of the results, for each of `types`, when they are others.
  DTypeVector results = {};
  std::array<Loop, kNumDTypes> loops{};
  Gradient* grad = nullptr;
  std::string_view error = {};
  /// Nanoseconds an element, for each dtype.
  std::array<float, kNumDTypes> cost_ns{};
  Domain domain = {};
  /// The inputs must have one shape: the ops that are gradients of others.
  bool same_shape = false;
};
using UnaryInfo = ElementwiseInfo<UnaryLoop, Output(Output x, Output y, Output dy)>;
using BinaryInfo =
    ElementwiseInfo<BinaryLoop, GradientPair(Output x, Output y, Output z, Output dz)>;

void RegisterUnary(OpRegistry& ops, const UnaryInfo& info);
void RegisterBinary(OpRegistry& ops, const BinaryInfo& info);

namespace elementwise_internal {

/// Elements of 16-bit floats are widened in pieces of this many.
inline constexpr int64_t kPiece = 256;

/// A value of the type of Op's results for elements of T; Applied is that of its maths.
template <typename Op, typename T, typename Applied>
auto ResultOf() {
  if constexpr (requires { typename Op::template Result<T>; }) {
    return typename Op::template Result<T>();
  } else {
    return std::conditional_t<std::is_same_v<Applied, bool>, bool, T>();
  }
}

template <typename Op, typename T>
void UnaryLoopOf(const void* x, void* y, int64_t n) {
  using C = ComputeType<T>;
  using R = decltype(ResultOf<Op, T, decltype(Op::Apply(C()))>());
  const T* in = static_cast<const T*>(x);
  R* out = static_cast<R*>(y);
  if constexpr (requires { Op::kFloatLoop; } && std::is_same_v<T, float>) {
    Op::kFloatLoop(in, out, n);
  } else if constexpr (requires { Op::kDoubleLoop; } && std::is_same_v<T, double>) {
    Op::kDoubleLoop(in, out, n);
  } else if constexpr (requires { Op::kFloatLoop; } && !std::is_same_v<C, T>) {
    float piece[kPiece];
    for (int64_t begin = 0; begin < n; begin += kPiece) {
      const int64_t count = n - begin < kPiece ? n - begin : kPiece;
      for (int64_t i = 0; i < count; ++i) piece[i] = static_cast<float>(in[begin + i]);
      Op::kFloatLoop(piece, piece, count);
      for (int64_t i = 0; i < count; ++i) out[begin + i] = static_cast<T>(piece[i]);
    }
  } else if constexpr (!std::is_trivially_copyable_v<T>) {
    for (int64_t i = 0; i < n; ++i) out[i] = Op::Apply(in[i]);
  } else {
    TENON_SIMD
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<R>(Op::Apply(static_cast<C>(in[i])));
    }
  }
}

/// The types whose loops are worth three versions each; the others take one with variable steps.
template <typename T>
inline constexpr bool kIsFrequent = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

template <typename Op, typename T>
bool BinaryLoopOf(const void* x, int64_t x_step, const void* y, int64_t y_step, void* z,
                  int64_t n) {
  using C = ComputeType<T>;
  using R = decltype(ResultOf<Op, T, decltype(Op::Apply(C(), C()))>());
  const T* a = static_cast<const T*>(x);
  const T* b = static_cast<const T*>(y);
  R* out = static_cast<R*>(z);
  if constexpr (requires { Op::Valid(C(), C()); }) {
    bool valid = true;
    for (int64_t i = 0; i < n; ++i) {
      valid &= Op::Valid(static_cast<C>(a[i * x_step]), static_cast<C>(b[i * y_step]));
    }
    if (!valid) return false;
  }
  const auto apply = [](const T& p, const T& q) {
    if constexpr (requires { Op::OfSecond(C()); }) {
      const T second = static_cast<T>(Op::OfSecond(static_cast<C>(q)));
      return static_cast<R>(Op::Apply(static_cast<C>(p), static_cast<C>(second)));
    } else {
      return static_cast<R>(Op::Apply(static_cast<const C&>(p), static_cast<const C&>(q)));
    }
  };
  if constexpr (!std::is_trivially_copyable_v<T>) {
    // Text may throw, which a SIMD loop must not.
    for (int64_t i = 0; i < n; ++i) out[i] = apply(a[i * x_step], b[i * y_step]);
  } else if (!kIsFrequent<T>) {
    TENON_SIMD
    for (int64_t i = 0; i < n; ++i) out[i] = apply(a[i * x_step], b[i * y_step]);
  } else if (x_step == y_step) {
    if (x_step == 0) {
      const R value = apply(*a, *b);
      for (int64_t i = 0; i < n; ++i) out[i] = value;
      return true;
    }
    TENON_SIMD
    for (int64_t i = 0; i < n; ++i) out[i] = apply(a[i], b[i]);
  } else if (y_step == 0) {
    const T q = *b;
    TENON_SIMD
    for (int64_t i = 0; i < n; ++i) out[i] = apply(a[i], q);
  } else {
    const T p = *a;
    TENON_SIMD
    for (int64_t i = 0; i < n; ++i) out[i] = apply(p, b[i]);
  }
  return true;
}

template <typename Op, typename T>
constexpr float CostOf() {
  if constexpr (requires { Op::kCost; }) {
    if (requires { Op::kFloatLoop; } && std::is_same_v<T, float>) return Op::kCost / 4;
    if (requires { Op::kDoubleLoop; } && std::is_same_v<T, double>) return Op::kCost / 3;
    return Op::kCost;
  }
  return 0.06f * sizeof(T);
}

template <typename Op, typename Info, typename... Ts>
Info Describe(TypeList<Ts...>) {
  Info info{.name = Op::kName, .types = {kDTypeOf<Ts>...}};
  if constexpr ((requires { typename Op::template Result<Ts>; } && ...)) {
    info.results = {kDTypeOf<typename Op::template Result<Ts>>...};
  }
  if constexpr (requires { &Op::Grad; }) info.grad = Op::Grad;
  if constexpr (requires { Op::kError; }) info.error = Op::kError;
  ((info.cost_ns[static_cast<int>(kDTypeOf<Ts>)] = CostOf<Op, Ts>()), ...);
  if constexpr (requires { Op::kDomain; }) info.domain = Op::kDomain;
  if constexpr (requires { Op::kSameShape; }) info.same_shape = true;
  if constexpr (std::is_same_v<Info, UnaryInfo>) {
    ((info.loops[static_cast<int>(kDTypeOf<Ts>)] = &UnaryLoopOf<Op, Ts>), ...);
  } else {
    ((info.loops[static_cast<int>(kDTypeOf<Ts>)] = &BinaryLoopOf<Op, Ts>), ...);
  }
  return info;
}

}  // namespace elementwise_internal

template <typename... Ops>
void RegisterUnaryList(OpRegistry& ops, TypeList<Ops...>) {
  (RegisterUnary(ops, elementwise_internal::Describe<Ops, UnaryInfo>(typename Ops::Types())), ...);
}
template <typename... Ops>
void RegisterBinaryList(OpRegistry& ops, TypeList<Ops...>) {
  (RegisterBinary(ops, elementwise_internal::Describe<Ops, BinaryInfo>(typename Ops::Types())),
   ...);
}

/// Type lists that many elementwise ops share.
using FloatComplexTypes = decltype(ConcatTypes(FloatTypes(), ComplexTypes()));
using SignedTypes =
    decltype(ConcatTypes(FloatTypes(), TypeList<int8_t, int16_t, int32_t, int64_t>()));
using SignedComplexTypes = decltype(ConcatTypes(SignedTypes(), ComplexTypes()));

}  // namespace tenon
