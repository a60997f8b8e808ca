// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/interruption.h"
#include "ops/arguments.h"

// What ops share that treat the parts of a tensor along one dimension each in a way of its own.

namespace tenon {

/// A tensor as [before, channels, after].
struct Channels {
  int64_t before = 1, count = 1, after = 1;
};

/// With the dimension `axis` for channels; with -1 there is one. InvalidArgument when `x` has no
/// such dimension.
inline StatusOr<Channels> ChannelsOf(const Tensor& x, int64_t axis) {
  if (axis == -1) return Channels{.after = x.num_elements()};
  if (axis < -1 || axis >= x.rank()) {
    TENON_ASSIGN_OR_RETURN(const int64_t rank, AddSizes(axis, 1));
    return InvalidArgument("Shape must be at least rank ", rank, " but is rank ", x.rank(),
                           ": Axis must be less than input dimension(", x.rank(), "), got ", axis);
  }
  const int at = static_cast<int>(axis);
  const auto dims = x.shape().dims();
  const int64_t before = x.num_elements() == 0 ? 0 : Product(dims, 0, at);
  return Channels{before, dims[at], Product(dims, at + 1, x.rank())};
}

/// Calls `visit(i)` for each element of channel `c`.
template <typename Visit>
void ForEachOf(const Channels& channels, int64_t c, Visit visit) {
  for (int64_t b = 0; b < channels.before && !Interrupted(); ++b) {
    const int64_t first = (b * channels.count + c) * channels.after;
    for (int64_t i = first; i < first + channels.after; ++i) visit(i);
  }
}

}  // namespace tenon
