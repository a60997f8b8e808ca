// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"

#include "ops/math_ops.h"

namespace tenon {
namespace {

Output ConstantOf(const Scope& s, Tensor value) {
  const DType dtype = value.dtype();
  return s.Op("Const").Attr("value", std::move(value)).Attr("dtype", dtype).Output();
}

}  // namespace

Output ScalarOf(const Scope& s, DType dtype, double value) {
  Tensor scalar(dtype, Shape());
  const bool numeric = Dispatch(dtype, NumericTypes(), [&](auto zero) {
    using T = decltype(zero);
    *scalar.data<T>() = T(value);
  });
  if (!numeric) s.Fail(InvalidArgument("no number has dtype ", ToString(dtype)));
  return ConstantOf(s, std::move(scalar));
}

Output IntVector(const Scope& s, const std::vector<int32_t>& values) {
  return ConstantOf(s, Tensor::Vector(values));
}

Output ShapeVector(const Scope& s, Output x) {
  if (!s.ok()) return Output();
  if (!x.shape().IsFullyKnown()) return s.Op("Shape").Input(x).Output();
  const auto dims = x.shape().dims();
  for (const int64_t d : dims) {
    if (d > INT32_MAX) return s.Op("Shape").Input(x).Output();
  }
  return IntVector(s, std::vector<int32_t>(dims.begin(), dims.end()));
}

Output ReshapeTo(const Scope& s, Output x, Output shape) {
  return s.Op("Reshape").Input(x).Input(shape).Output();
}

Output Scaled(const Scope& s, Output x, double factor) {
  return s.ok() ? Mul(s, ScalarOf(s, x.dtype(), factor), x) : Output();
}

Output ConjugateOf(const Scope& s, Output x) {
  if (!s.ok() || !IsComplex(x.dtype())) return x;
  return s.Op("Conj").Input(x).Output();
}

}  // namespace tenon
