// SPDX-License-Identifier: Apache-2.0
#include "train/broadcast_weights.h"

#include "ops/array/array_ops.h"

namespace tenon {

Output BroadcastWeights(const Output& weights, const Output& values,
                        const std::source_location& at) {
  const PartialShape &w = weights.shape(), &v = values.shape();
  if (w.rank() == 0) return weights;
  const bool ranks_known = w.rank_known() && v.rank_known();
  bool known = ranks_known, fits = !ranks_known || w.rank() == v.rank();
  for (int i = 0; ranks_known && fits && i < w.rank(); ++i) {
    if (w.dim(i) == 1 || (w.dim(i) == v.dim(i) && w.dim(i) >= 0)) continue;
    fits = w.dim(i) < 0 || v.dim(i) < 0;
    known = false;
  }
  if (!fits) {
    CurrentBuilding().Fail(InvalidArgument("weights of shape ", w.ToString(),
                                           " cannot be broadcast to values of ", v.ToString()),
                           at);
    return {};
  }
  return known ? weights : BroadcastTo(weights, ShapeOf(values));
}

}  // namespace tenon
