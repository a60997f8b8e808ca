// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/graph/graph.h"

namespace tenon {

/// When a pass runs.
enum class PassStage {
  kStep,    // on the placed graph of a step, before it is cut; other tasks may be TensorFlow's
  kDevice,  // on the part of one device, which may then have ops that only Tenon knows
};

/// What every pass may know of its surroundings.
struct PassContext {
  /// In kStep a CPU device, to compute constants on; in kDevice the device of the graph.
  Device* device = nullptr;
};

/// A rewrite of a graph that keeps what its fetches and targets give, and what it sends, but for
/// the rounding of sums that are added up in another order, where it says so. Passes never touch
/// _Arg, _Retval, stateful ops or placement.
struct Pass {
  std::string_view name;
  /// The field of TensorFlow's RewriterConfig that turns it off, and others of the kind with it.
  std::string_view rewriter_option;
  std::string_view doc;
  PassStage stage;
  /// Whether it changed the graph.
  StatusOr<bool> (*run)(Graph* graph, const PassContext& context);
};

/// Every pass, in the order in which they run.
const std::vector<Pass>& AllPasses();

/// Which passes run. Names are those of AllPasses.
struct PassOptions {
  bool enabled = true;
  std::vector<std::string> disabled;
};

/// Runs the passes of a stage and validates the graph after each that changed it. InvalidArgument
/// for an unknown name among the disabled; an error in a pass names the pass.
Status RunPasses(PassStage stage, Graph* graph, const PassContext& context,
                 const PassOptions& options);

}  // namespace tenon
