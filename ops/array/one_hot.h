// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"

namespace tenon {

/// What OneHot makes: [..., depth, inner] of indices [..., inner].
struct OneHotPlan {
  Shape shape;
  int64_t depth = 0, inner = 1;
};
/// The plan for a node's inputs; only the depth is read. InvalidArgument when they do not fit.
StatusOr<OneHotPlan> PlanOneHot(const KernelContext& ctx, int64_t axis_attr);

}  // namespace tenon
