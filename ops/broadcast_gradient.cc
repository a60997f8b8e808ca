// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast_gradient.h"

#include <algorithm>
#include <optional>

#include "ops/composition.h"

namespace tenon {
namespace {

/// The axes of the common shape along which `x` is repeated; nothing when the static shapes leave
/// it open. An axis where both have 1 is never in it.
std::optional<std::vector<int32_t>> RepeatedAxes(const PartialShape& x, const PartialShape& y) {
  if (!x.rank_known() || !y.rank_known()) return std::nullopt;
  const int rank = std::max(x.rank(), y.rank());
  std::vector<int32_t> axes;
  for (int i = 0; i < rank; ++i) {
    const int ix = i - (rank - x.rank()), iy = i - (rank - y.rank());
    const int64_t dx = ix < 0 ? 1 : x.dim(ix), dy = iy < 0 ? 1 : y.dim(iy);
    if (ix < 0 || (dx == 1 && dy != 1)) {
      // Summing over one element, should the other turn out to have one, does no harm.
      axes.push_back(i);
    } else if (dx < 0 && dy != 1) {
      return std::nullopt;
    }
  }
  return axes;
}

/// `missing`: how many leading axes of the common shape x does not have.
Output SumOverAxes(Output x, int missing, const std::vector<int32_t>& axes, Output dx) {
  if (axes.empty()) return dx;
  // Axes that x does not have fall away, those where it has 1 stay.
  if (missing == static_cast<int>(axes.size())) return Sum(dx, axes);
  if (missing == 0) return Sum(dx, axes, {.keep_dims = true});
  return Reshape(Sum(dx, axes), ShapeVector(x));
}

}  // namespace

void SumToOperands(Output x, Output y, Output* dx, Output* dy) {
  const auto x_axes = RepeatedAxes(x.shape(), y.shape());
  const auto y_axes = RepeatedAxes(y.shape(), x.shape());
  const int missing = x.shape().rank() - y.shape().rank();
  if (x_axes && dx->exists()) *dx = SumOverAxes(x, std::max(0, -missing), *x_axes, *dx);
  if (y_axes && dy->exists()) *dy = SumOverAxes(y, std::max(0, missing), *y_axes, *dy);
  if ((x_axes || !dx->exists()) && (y_axes || !dy->exists())) return;
  const Output x_shape = ShapeVector(x), y_shape = ShapeVector(y);
  const auto [x_repeated, y_repeated] = BroadcastGradientArgs(x_shape, y_shape);
  if (!x_axes && dx->exists()) *dx = Reshape(Sum(*dx, x_repeated), x_shape);
  if (!y_axes && dy->exists()) *dy = Reshape(Sum(*dy, y_repeated), y_shape);
}

Output SumToOperand(Output x, Output z, Output dz) {
  Output none;
  SumToOperands(x, z, &dz, &none);
  return dz;
}

}  // namespace tenon
