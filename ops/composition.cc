// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"

#include <algorithm>

namespace tenon {

Output ShapeVector(const Output& x) {
  if (!x.shape().IsFullyKnown()) return ShapeOf(x);
  const auto dims = x.shape().dims();
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d > INT32_MAX; })) {
    return ShapeOf(x);
  }
  return Const(std::vector<int32_t>(dims.begin(), dims.end()));
}

Output Scaled(const Output& x, double factor) { return Mul(factor, x); }

Output ConjugateOf(const Output& x) { return IsComplex(x.dtype()) ? Conj(x) : x; }

std::vector<Output> DysOrZeros(const GradContext& g) {
  std::vector<Output> all = g.dys();
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) all[i] = ZerosLike(g.out(static_cast<int>(i)));
  }
  return all;
}

}  // namespace tenon
