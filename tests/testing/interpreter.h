// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "core/op/kernel.h"
#include "runtime/execute/kernel_cache.h"

namespace tenon::testing {

/// Runs a graph node by node in topological order on the calling thread, keeping every value until
/// the end. Slow and simple: the executor is tested against it. Knows dead branches; Unimplemented
/// for graphs with while loops.
///
/// `args` are the values of the _Arg nodes by index; the result has those of the _Retval nodes.
StatusOr<std::vector<Tensor>> Interpret(const Graph& graph, const DeviceRun& run,
                                        KernelCache& kernels, const std::vector<Tensor>& args);

}  // namespace tenon::testing
