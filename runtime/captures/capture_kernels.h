// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/captures/find_captures.h"
#include "runtime/execute/kernel_cache.h"

namespace tenon {

/// Puts one node (_CaptureKernel) in the place of each group of nodes of part `index` (see
/// FindCaptures), whose kernels can be captured and repeated as a whole (see CaptureKernel).
/// REQUIRES: AddMemoryCopies has been called for all parts. Nothing is done for a device without a
/// queue.
///
/// Gives the kernels of the part's nodes: of the groups those that it has made, of others
/// `kernel_of`'s.
StatusOr<KernelOf> CaptureKernels(absl::Span<const DevicePart> parts, size_t index,
                                  const KernelOf& kernel_of);

}  // namespace tenon
