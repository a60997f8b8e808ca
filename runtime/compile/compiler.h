// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "runtime/compile/placer.h"
#include "runtime/execute/kernel_cache.h"
#include "runtime/execute/local_runtime.h"
#include "runtime/execute/program.h"
#include "runtime/execute/signature.h"
#include "runtime/passes/pass.h"

namespace tenon {

struct Compilation;

/// What a compiler is to do, beside what follows from the devices.
struct CompilerOptions {
  PassOptions passes = {};
  /// A graph may have so many nodes, with the bodies of functions: a few of these may be called a
  /// million times.
  int64_t max_nodes = 1 << 23;
};

/// Turns graphs into programs. A session in the process goes all the way; a master goes as far as
/// Cut, and each worker takes it up again at Build with its own partition. Immutable, copyable and
/// thread-safe.
class Compiler {
 public:
  /// Programs run on the devices of `runtime`, which they keep; for a master these only fold
  /// constants.
  Compiler(LocalRuntime runtime, CompilerOptions options)
      : runtime_(std::move(runtime)), options_(std::move(options)) {}

  const LocalRuntime& runtime() const { return runtime_; }

  /// Puts the bodies of functions in the place of calls, of nodes from `first_id` on; see
  /// ExpandFunctions.
  Status Expand(Graph* graph, int first_id = 0) const;
  /// Assigns a device to each node that has none; see PlaceNodes.
  Status Place(Graph* graph, std::vector<PlacementDevice> devices, PlacementOptions options) const;
  /// The same on the devices of this process, of which the first is the default.
  Status Place(Graph* graph, PlacementOptions options) const;
  /// The part of a placed graph that a signature needs, optimised.
  StatusOr<Graph> Cut(const Graph& placed, const Signature& signature) const;
  /// The program of a cut graph whose nodes are all on devices of this process. Stateful kernels
  /// are those that `kernels` has.
  StatusOr<std::shared_ptr<Program>> Build(Graph graph, KernelCache& kernels) const;

  /// One step of the way from a graph to a program.
  struct Stage {
    std::string_view name;
    std::string_view doc;
    Status (*run)(const Compiler&, Compilation&);
  };
  /// Every stage, in the order in which they run.
  static const std::vector<Stage>& AllStages();

 private:
  friend struct Compilation;
  /// A compiler as `other`, of graphs that run within `depth` functions.
  Compiler(const Compiler& other, int depth)
      : runtime_(other.runtime_), options_(other.options_), depth_(depth) {}
  /// Runs the stages from one index to the other, which is included.
  Status RunStages(size_t first, size_t last, Compilation& compilation) const;

  LocalRuntime runtime_;
  CompilerOptions options_;
  int depth_ = 0;
};

}  // namespace tenon
