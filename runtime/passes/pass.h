// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/graph.h"

namespace tenon {

/// What every pass may know of its surroundings.
struct PassContext {
  /// A CPU device, to compute constants on.
  Device* cpu = nullptr;
};

/// A rewrite of a placed step graph that keeps what its fetches and targets give. Passes never
/// touch _Arg, _Retval, stateful ops or placement.
struct Pass {
  std::string_view name;
  std::string_view doc;
  Status (*run)(Graph* graph, const PassContext& context);
};

/// Every pass, in the order in which they run.
const std::vector<Pass>& AllPasses();

/// Which passes run. Names are those of AllPasses.
struct PassOptions {
  bool enabled = true;
  std::vector<std::string> disabled;
};

/// Runs the passes and validates the graph after each. InvalidArgument for an unknown name among
/// the disabled; an error in a pass names the pass.
Status RunPasses(Graph* graph, const PassContext& context, const PassOptions& options);

/// The passes themselves; see the .cc of each.
Status FoldConstants(Graph* graph, const PassContext& context);
Status MergeCommonSubexpressions(Graph* graph, const PassContext& context);

}  // namespace tenon
