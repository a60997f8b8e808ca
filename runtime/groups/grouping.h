// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "runtime/groups/find_groups.h"
#include "runtime/kernel_cache.h"

namespace tenon {

/// Puts one node (_KernelGroup) in the place of each group of nodes of part `index` (see
/// FindGroups), whose kernels can be recorded and repeated as a whole (see KernelGroup). REQUIRES:
/// AddMemoryCopies has been called for all parts. Nothing is done for a device without a queue.
///
/// Gives the kernels of the groups, and those that it has made for other nodes.
StatusOr<KernelMap> GroupKernels(const std::vector<StepPart>& parts, size_t index,
                                 KernelCache& kernels,
                                 const std::shared_ptr<FunctionRuntime>& functions);

}  // namespace tenon
