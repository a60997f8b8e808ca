// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/broadcast.h"
#include "ops/math/reduction.h"

namespace tenon {

/// How BiasAdd walks its inputs; InvalidArgument for shapes that do not fit.
StatusOr<BroadcastPlan> PlanBiasAdd(const Tensor& x, const Tensor& bias,
                                    std::string_view data_format);

/// Writes the sum of what `x` points to, in the shape and dtype of `y`, which may be the same
/// memory, and the bias to `y`, as `plan` says; `channels_last` says where the bias lies along.
void AddBias(const BroadcastPlan& plan, bool channels_last, const void* x, const Tensor& bias,
             Tensor* y);

/// How BiasAddGrad reduces `dy`; InvalidArgument for one of rank 0 or 1.
StatusOr<ReductionPlan> PlanBiasAddGrad(const Tensor& dy, std::string_view data_format);

}  // namespace tenon
