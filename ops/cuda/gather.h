// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/cuda/kernel_types.h"

namespace tenon::cuda {

/// Queues what GatherSlices does as output 0.
Status QueueGatherSlices(KernelContext& ctx, const NodeIdentity& node, const Tensor& params,
                         const Tensor& indices, int axis, int batch_dims);
/// The same of GatherTuples.
Status QueueGatherTuples(KernelContext& ctx, const NodeIdentity& node, const Tensor& params,
                         const Tensor& indices);

}  // namespace tenon::cuda
