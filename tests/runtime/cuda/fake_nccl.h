// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/cuda/nccl.h"

namespace tenon::fake {

/// NCCL for ranks that are threads of this process, over the fake of CUDA's runtime. As the real
/// one does, it works on the stream once all ranks have queued the same, joins and ends in the
/// background, and waits without end for a rank that does not come.
const cuda::Nccl& FakeNccl();

/// From now on the connections of all communicators have failed, as the next look finds, and work
/// that has not been done is not; kSuccess ends that.
void FailConnections(cuda::NcclResult result);

/// The next attempts to join fail; kSuccess ends that.
void FailJoining(cuda::NcclResult result);

/// Communicators that have been neither destroyed nor aborted, and those that were aborted so far.
int OpenCommunicators();
int AbortedCommunicators();

}  // namespace tenon::fake
