// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/op/kernel.h"
#include "ops/broadcast.h"
#include "ops/maths.h"

// What choosing and clipping elements demand and do, on every device.

namespace tenon {

/// The shape that the condition `c` of Select counts as, which broadcasts to that of its values `t`
/// and `e`; InvalidArgument for shapes that do not fit.
StatusOr<Shape> SelectCondition(const Shape& c, const Shape& t, const Shape& e);

/// How the inputs of ClipByValue are walked; InvalidArgument for limits of another shape.
StatusOr<BroadcastPlan> PlanClip(const KernelContext& ctx);

/// `v`, or the limit that it is beyond; `low` when the limits cross. Complex numbers are clipped
/// part by part.
template <typename C>
TENON_HD C Clipped(C v, C low, C high) {
  if constexpr (kIsComplex<C>) {
    return C(Clipped(v.real(), low.real(), high.real()),
             Clipped(v.imag(), low.imag(), high.imag()));
  } else {
    const C lowered = high < v ? high : v;
    return lowered < low ? low : lowered;
  }
}

}  // namespace tenon
