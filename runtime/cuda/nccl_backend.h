// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/collectives/collective_backend.h"
#include "runtime/cuda/cuda_driver.h"
#include "runtime/cuda/nccl.h"

namespace tenon::cuda {

/// Joins by NCCL, each rank with a GPU of its own, that of `driver`. As CollectivesPlugin::join;
/// FailedPrecondition where two ranks have one GPU.
///
/// The calls take memory of the GPU, and block until the GPU is done, so that what is queued from
/// then on sees the result. What they read has been computed when they are called. They run beside
/// the kernels of `driver`, and behind those queued before where they have an `out`, whose memory
/// these may still use. NCCL finds no rank that does something else: ranks compare their calls
/// first. Both outlive the backend.
StatusOr<std::unique_ptr<CollectiveBackend>> JoinByNccl(const RankOptions& options,
                                                        CudaDriver& driver, const Nccl& nccl);

}  // namespace tenon::cuda
