// SPDX-License-Identifier: Apache-2.0
#include "core/op/op_registry.h"
#include "ops/composition.h"
#include "ops/elementwise.h"
#include "ops/math/math_ops.h"

// Between complex numbers and their parts. Complex gradients are conjugates, as TensorFlow has it.

namespace tenon {
namespace {

/// x + yi
Output ComplexOf(Output x, Output y) {
  const bool is_double = x.dtype() == DType::kDouble;
  return Complex(x, y, {.Tout = is_double ? DType::kComplex128 : DType::kComplex64});
}
Output Zero(Output x) { return Const(0, {.dtype = x.dtype()}); }
Output RealOf(Output z) {
  return Real(z, {.Tout = z.dtype() == DType::kComplex128 ? DType::kDouble : DType::kFloat});
}
Output ImagOf(Output z) {
  return Imag(z, {.Tout = z.dtype() == DType::kComplex128 ? DType::kDouble : DType::kFloat});
}

struct ComplexOp : Elementwise<"Complex", TypeList<float, double>> {
  template <typename T>
  using Result = std::complex<T>;
  template <typename T>
  TENON_HD static std::complex<T> Apply(T x, T y) {
    return {x, y};
  }
  static GradientPair Grad(Output, Output, Output, Output dz) { return {RealOf(dz), ImagOf(dz)}; }
};

template <OpName kOpName>
struct Part : Elementwise<kOpName, ComplexTypes> {
  template <typename T>
  using Result = typename T::value_type;
};

struct RealOp : Part<"Real"> {
  TENON_HD static auto Apply(auto z) { return z.real(); }
  static Output Grad(Output, Output, Output dy) { return ComplexOf(dy, Zero(dy)); }
};

struct ImagOp : Part<"Imag"> {
  TENON_HD static auto Apply(auto z) { return z.imag(); }
  static Output Grad(Output, Output, Output dy) { return ComplexOf(Zero(dy), dy); }
};

struct AngleOp : Part<"Angle"> {
  static constexpr double kCost = 10;
  TENON_HD static auto Apply(auto z) { return std::arg(z); }
  static Output Grad(Output z, Output, Output dy) {
    return -ComplexOf(dy, Zero(dy)) * Reciprocal(ComplexOf(ImagOf(z), RealOf(z)));
  }
};

struct ComplexAbsOp : Part<"ComplexAbs"> {
  static constexpr double kCost = 4;
  TENON_HD static auto Apply(auto z) { return std::abs(z); }
  static Output Grad(Output z, Output y, Output dy) {
    return DivNoNan(ComplexOf(dy, Zero(dy)) * z, ComplexOf(y, Zero(y)));
  }
};

}  // namespace

void RegisterComplexOps(OpRegistry& ops) {
  RegisterBinaryList(ops, TypeList<ComplexOp>());
  RegisterUnaryList(ops, TypeList<RealOp, ImagOp, AngleOp, ComplexAbsOp>());
}

}  // namespace tenon
