// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/graph.h"
#include "runtime/kernel_cache.h"

namespace tenon {

/// Puts one node (_KernelGroup) in the place of nodes of `part` whose kernels follow each other on
/// `device` without the host in between, so that they can be recorded and repeated as a whole (see
/// KernelGroup). For a device with a queue; REQUIRES: AddMemoryCopies has been called. Parts with
/// loops or branches stay as they are, and so do those that send values to other tasks, which want
/// each as soon as it is made.
///
/// Gives the kernels of the groups, and those that it has made for other nodes.
StatusOr<KernelMap> GroupKernels(Graph* part, Device& device, KernelCache& kernels,
                                 const std::shared_ptr<FunctionRuntime>& functions);

}  // namespace tenon
