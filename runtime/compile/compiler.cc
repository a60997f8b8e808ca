// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/compiler.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/base/hash_map.h"
#include "runtime/captures/capture_kernels.h"
#include "runtime/compile/collective_order.h"
#include "runtime/compile/memory_copies.h"
#include "runtime/compile/partition.h"
#include "runtime/compile/step_graph.h"
#include "runtime/functions/expansion.h"
#include "runtime/functions/function_runtime.h"

namespace tenon {
namespace {

/// How deep functions may be nested that are made ready while others run: each takes a thread.
constexpr int kMaxNestedFunctions = 32;

/// Where stages stand among AllStages.
enum StageIndex : size_t { kExpand, kPlace, kCut, kOptimise = 4, kPartition, kPlan = 9 };

}  // namespace

/// A graph on its way to a program: what each stage takes from those before it. The graph is the
/// caller's up to the cut.
struct Compilation {
  explicit Compilation(Graph* of) : graph(of) {}

  Graph* graph;
  // For the expansion.
  int first_id = 0;
  // For the placement.
  std::vector<PlacementDevice> devices = {};
  PlacementOptions placement = {};
  // For the cut.
  const Graph* placed = nullptr;
  const Signature* signature = nullptr;
  // For the program.
  KernelCache* kernels = nullptr;
  std::shared_ptr<FunctionRuntime> functions = nullptr;
  std::map<std::string, Graph> partitions = {};
  std::vector<DevicePart> parts = {};
  std::vector<KernelOf> kernels_of = {};
  std::vector<std::unique_ptr<ExecutionPlan>> plans = {};

  static Status Expand(const Compiler& compiler, Compilation& c) {
    return ExpandFunctions(c.graph, compiler.options_.max_nodes, c.first_id);
  }
  static Status Place(const Compiler&, Compilation& c) {
    return PlaceNodes(c.graph, c.devices, c.placement);
  }
  static Status Cut(const Compiler&, Compilation& c) {
    TENON_ASSIGN_OR_RETURN(*c.graph, MakeStepGraph(*c.placed, *c.signature));
    return OkStatus();
  }
  static Status Order(const Compiler&, Compilation& c) { return OrderCollectives(c.graph); }
  static Status Optimise(const Compiler& compiler, Compilation& c) {
    return RunPasses(PassStage::kStep, c.graph, {compiler.runtime_.devices[0]},
                     compiler.options_.passes);
  }
  static Status Partition(const Compiler& compiler, Compilation& c);
  static Status OptimiseDevices(const Compiler& compiler, Compilation& c) {
    for (const DevicePart& part : c.parts) {
      TENON_RETURN_IF_ERROR(
          RunPasses(PassStage::kDevice, part.graph, {part.device}, compiler.options_.passes));
    }
    return OkStatus();
  }
  static Status Copy(const Compiler&, Compilation& c) { return AddMemoryCopies(c.parts); }
  static Status Capture(const Compiler& compiler, Compilation& c) {
    for (size_t i = 0; i < c.parts.size(); ++i) {
      TENON_ASSIGN_OR_RETURN(c.kernels_of.emplace_back(),
                             CaptureKernels(c.parts, i,
                                            c.kernels->On(*c.parts[i].device, c.functions,
                                                          compiler.runtime_.devices)));
    }
    return OkStatus();
  }
  static Status Plan(const Compiler&, Compilation& c) {
    for (size_t i = 0; i < c.parts.size(); ++i) {
      TENON_ASSIGN_OR_RETURN(
          c.plans.emplace_back(),
          ExecutionPlan::Create(*c.parts[i].graph, *c.parts[i].device, c.kernels_of[i]));
    }
    return OkStatus();
  }
};

Status Compilation::Partition(const Compiler& compiler, Compilation& c) {
  const LocalRuntime& runtime = compiler.runtime_;
  flat_hash_map<int64_t, const Node*> retvals;
  for (const Node* n : c.graph->nodes()) {
    if (n->is_retval()) {
      // The parts of devices write their results at once.
      const int64_t index = n->attrs().GetOr<int64_t>("index", 0);
      const auto [found, added] = retvals.try_emplace(index, n);
      if (!added) {
        return InvalidArgument("nodes '", found->second->name(), "' and '", n->name(),
                               "' (_Retval) both give result ", index);
      }
    }
    if (n->assigned_device().empty()) {
      return InvalidArgument("Node '", n->name(), "' is missing a device specification");
    }
    if (runtime.Find(n->assigned_device()) == nullptr) {
      return InvalidArgument("node '", n->name(), "': ", n->assigned_device(), " unknown device.");
    }
  }
  if (!c.graph->functions().empty()) {
    const auto compile = [compiler = Compiler(compiler, compiler.depth_ + 1)](
                             Graph graph,
                             const Signature& signature) -> StatusOr<std::shared_ptr<Program>> {
      if (compiler.depth_ > kMaxNestedFunctions) {
        return Unimplemented("it is called by datasets within more than ", kMaxNestedFunctions,
                             " functions, or within itself");
      }
      TENON_RETURN_IF_ERROR(compiler.Expand(&graph));
      TENON_RETURN_IF_ERROR(compiler.Place(&graph, {.allow_soft_placement = true}));
      TENON_ASSIGN_OR_RETURN(Graph cut, compiler.Cut(graph, signature));
      // What is stateful in a function's body is its own.
      KernelCache kernels;
      return compiler.Build(std::move(cut), kernels);
    };
    c.functions = MakeFunctionRuntime(c.graph->shared_functions(), c.graph->registry(),
                                      runtime.running, compile);
  }
  PartitionOptions options;
  options.location = [](const Node& n) { return std::string_view(n.assigned_device()); };
  options.incarnation = [&](const std::string& d) { return runtime.Find(d)->incarnation(); };
  options.tensor_prefix = "local_";
  TENON_ASSIGN_OR_RETURN(c.partitions, PartitionGraph(std::move(*c.graph), options));
  for (auto& [name, part] : c.partitions) c.parts.push_back({&part, runtime.Find(name)});
  return OkStatus();
}

const std::vector<Compiler::Stage>& Compiler::AllStages() {
  static const auto* const stages = new std::vector<Stage>{
      {"expand", "puts the bodies of functions in the place of calls", Compilation::Expand},
      {"place", "assigns a device to each node", Compilation::Place},
      {"cut", "takes what feeds, fetches and targets need", Compilation::Cut},
      {"order", "has collectives run in the same order on all ranks", Compilation::Order},
      {"optimise", "runs the passes over the whole step", Compilation::Optimise},
      {"partition", "divides the graph by device, with a send and a receive for each edge between",
       Compilation::Partition},
      {"optimise devices", "runs the passes over the part of each device",
       Compilation::OptimiseDevices},
      {"copy", "adds the copies between a device's memory and the host's", Compilation::Copy},
      {"capture", "puts one node in the place of kernels that can be captured together",
       Compilation::Capture},
      {"plan", "lays nodes and kernels out in flat arrays", Compilation::Plan},
  };
  return *stages;
}

Status Compiler::RunStages(size_t first, size_t last, Compilation& compilation) const {
  for (size_t i = first; i <= last; ++i) {
    TENON_RETURN_IF_ERROR(AllStages()[i].run(*this, compilation));
  }
  return OkStatus();
}

Status Compiler::Expand(Graph* graph, int first_id) const {
  Compilation compilation(graph);
  compilation.first_id = first_id;
  return RunStages(kExpand, kExpand, compilation);
}

Status Compiler::Place(Graph* graph, std::vector<PlacementDevice> devices,
                       PlacementOptions options) const {
  Compilation compilation(graph);
  compilation.devices = std::move(devices);
  compilation.placement = std::move(options);
  return RunStages(kPlace, kPlace, compilation);
}

Status Compiler::Place(Graph* graph, PlacementOptions options) const {
  std::vector<PlacementDevice> devices;
  for (const Device* d : runtime_.devices) {
    TENON_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(d->name()));
    devices.push_back({std::move(name), d->kind()});
  }
  options.default_device = devices[0].name;
  return Place(graph, std::move(devices), std::move(options));
}

StatusOr<Graph> Compiler::Cut(const Graph& placed, const Signature& signature) const {
  Graph cut(placed.registry());
  Compilation compilation(&cut);
  compilation.placed = &placed;
  compilation.signature = &signature;
  TENON_RETURN_IF_ERROR(RunStages(kCut, kOptimise, compilation));
  return cut;
}

StatusOr<std::shared_ptr<Program>> Compiler::Build(Graph graph, KernelCache& kernels) const {
  Compilation compilation(&graph);
  compilation.kernels = &kernels;
  TENON_RETURN_IF_ERROR(RunStages(kPartition, kPlan, compilation));
  return std::make_shared<Program>(std::move(compilation.plans), runtime_.pool, runtime_.owner);
}

}  // namespace tenon
