// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/graph/output.h"
#include "core/op/kernel.h"

namespace tenon::testing {

/// Runs small graphs without control flow, node by node, on the test device. Kernels are kept, so
/// that state in them goes on from run to run. The graph must outlive the runner.
class GraphRunner {
 public:
  explicit GraphRunner(const Graph& graph) : graph_(graph) {}

  using Feeds = std::vector<std::pair<Output, Tensor>>;
  /// The values of `fetches` when the outputs in `feeds` have the values given.
  StatusOr<std::vector<Tensor>> Run(const std::vector<Output>& fetches, const Feeds& feeds = {});

 private:
  StatusOr<Kernel*> KernelOf(const Node& node);

  const Graph& graph_;
  std::map<const Node*, std::unique_ptr<Kernel>> kernels_;
};

}  // namespace tenon::testing
