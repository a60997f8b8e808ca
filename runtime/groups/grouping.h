// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/groups/find_groups.h"
#include "runtime/kernel_cache.h"

namespace tenon {

/// Puts one node (_KernelGroup) in the place of each group of nodes of part `index` (see
/// FindGroups), whose kernels can be recorded and repeated as a whole (see KernelGroup). REQUIRES:
/// AddMemoryCopies has been called for all parts. Nothing is done for a device without a queue.
///
/// Gives the kernels of the part's nodes: of the groups those that it has made, of others
/// `kernel_of`'s.
StatusOr<KernelOf> GroupKernels(absl::Span<const DevicePart> parts, size_t index,
                                const KernelOf& kernel_of);

}  // namespace tenon
