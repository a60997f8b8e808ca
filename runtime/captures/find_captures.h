// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "core/base/hash_map.h"
#include "core/graph/graph.h"
#include "runtime/device/device_part.h"
#include "runtime/execute/kernel_cache.h"

namespace tenon {

/// The kernels of some nodes of a graph.
using KernelMap = flat_hash_map<const Node*, std::shared_ptr<const Kernel>>;

/// The nodes of part `index` of a step, on a device with a queue, that can be one kernel: each
/// group can run when what comes into it is there, and none waits for what it gives itself, through
/// other parts either. `parts` are all parts of the step in this process. None in steps with loops
/// or branches, nor in those that send values to other tasks, which want each as soon as it is
/// made.
///
/// What kernels it has made are in `made`.
StatusOr<std::vector<std::vector<Node*>>> FindCaptures(absl::Span<const DevicePart> parts,
                                                       size_t index, const KernelOf& kernel_of,
                                                       KernelMap* made);

/// The variable to which a reference refers, or null: ops hand on that of their first input.
Node* VariableOf(Endpoint reference);
/// Whether the node, which uses no other resources, changes variables.
bool ChangesVariables(const Node& node);

}  // namespace tenon
