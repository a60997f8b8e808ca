// SPDX-License-Identifier: Apache-2.0
#include "ops/composition.h"

#include <algorithm>

namespace tenon {

Output ShapeVector(const Output& x) {
  if (!x.shape().IsFullyKnown()) return ShapeOf(x);
  const auto dims = x.shape().dims();
  const bool large = !dims.empty() && *std::max_element(dims.begin(), dims.end()) > INT32_MAX;
  return large ? ShapeOf(x) : Const(std::vector<int32_t>(dims.begin(), dims.end()));
}

Output ConjugateOf(const Output& x) { return IsComplex(x.dtype()) ? Conj(x) : x; }

std::vector<Output> DysOrZeros(const GradContext& g) {
  std::vector<Output> all = g.dys();
  const DType dtype =
      std::find_if(all.begin(), all.end(), [](const auto& dy) { return dy.exists(); })->dtype();
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].exists()) all[i] = ZerosOf(g.out(static_cast<int>(i)), dtype);
  }
  return all;
}

}  // namespace tenon
