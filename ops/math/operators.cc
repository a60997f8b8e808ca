// SPDX-License-Identifier: Apache-2.0
#include "ops/math/operators.h"

#include "ops/math/math_ops.h"

namespace tenon {
namespace {

OpOptions At(const Input& x) { return {.location = x.location()}; }

DType TypeOf(const Input& x) {
  if (x.output() != nullptr) return x.output()->dtype();
  return x.tensor() != nullptr ? x.tensor()->dtype() : DType::kInvalid;
}

}  // namespace

Output operator+(const Input& x, const Input& y) { return AddV2(x, y, At(x)); }
Output operator-(const Input& x, const Input& y) { return Sub(x, y, At(x)); }
Output operator*(const Input& x, const Input& y) { return Mul(x, y, At(x)); }
Output operator/(const Input& x, const Input& y) {
  const bool integers = IsInteger(TypeOf(x)) || IsInteger(TypeOf(y));
  return integers ? TruncateDiv(x, y, At(x)) : RealDiv(x, y, At(x));
}
Output operator%(const Input& x, const Input& y) { return FloorMod(x, y, At(x)); }
Output operator-(const Input& x) { return Neg(x, At(x)); }
Output operator<(const Input& x, const Input& y) { return Less(x, y, At(x)); }
Output operator<=(const Input& x, const Input& y) { return LessEqual(x, y, At(x)); }
Output operator>(const Input& x, const Input& y) { return Greater(x, y, At(x)); }
Output operator>=(const Input& x, const Input& y) { return GreaterEqual(x, y, At(x)); }

}  // namespace tenon
