// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/base/status.h"
#include "core/tensor/shape.h"

namespace tenon {

/// How to walk operands of different shapes as if they had one (numpy's and TensorFlow's rule:
/// shapes are aligned at the end, a missing dimension or one of 1 is repeated). Neighbouring
/// dimensions that behave alike in every operand are merged, so that the innermost one is as long
/// as can be; in it each operand has stride 0 or 1.
struct BroadcastPlan {
  static constexpr int kMaxOperands = 3;
  struct Dim {
    int64_t size;
    int64_t strides[kMaxOperands];  // in elements; 0 where the operand is repeated
  };

  Shape shape;                       // of the result
  absl::InlinedVector<Dim, 4> dims;  // outermost first; at least one

  const Dim& inner() const { return dims.back(); }
};

/// InvalidArgument "Incompatible shapes: [2] vs. [3]". At most kMaxOperands shapes.
StatusOr<BroadcastPlan> PlanBroadcast(absl::Span<const Shape* const> operands);

/// How a tensor of shape `x` is repeated to the shape `wanted`; operand 1 is the result.
/// InvalidArgument when it does not broadcast to it.
StatusOr<BroadcastPlan> PlanBroadcastTo(const Shape& x, const Shape& wanted);

/// Calls `fn(offsets, out, n)` for every run of elements: `offsets[k]` is where operand k begins,
/// from where it goes with its innermost stride, and `out` where the result does. Runs in parallel
/// when it pays (see ParallelFor).
void ForEachRun(const BroadcastPlan& plan, double cost_ns,
                absl::FunctionRef<void(const int64_t* offsets, int64_t out, int64_t n)> fn);

}  // namespace tenon
