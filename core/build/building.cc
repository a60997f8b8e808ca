// SPDX-License-Identifier: Apache-2.0
#include "core/build/building.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "core/device/device_name.h"

namespace tenon {
namespace {

thread_local const BuildContext* current = nullptr;

BuildContext WithPrefix(BuildContext context, std::string_view name,
                        const std::source_location& at) {
  if (!IsLegalNodeName(context.prefix + std::string(name))) {
    context.Fail(IllegalNodeName(name, "scope"), at);
  }
  StrAppend(&context.prefix, name, "/");
  return context;
}

BuildContext WithDevice(BuildContext context, std::string_view device,
                        const std::source_location& at) {
  auto merged = MergeDeviceNames(context.device, device);
  if (!merged.ok()) context.Fail(merged.status(), at);
  if (merged.ok()) context.device = *std::move(merged);
  return context;
}

BuildContext WithDevice(BuildContext context, DeviceFunction function) {
  context.device_function = std::move(function);
  return context;
}

BuildContext After(BuildContext context, const std::vector<Output>& nodes,
                   const std::source_location& at) {
  for (const Output& n : nodes) {
    const Status s = context.CheckBuilt(n, "what new nodes shall wait for");
    if (!s.ok()) context.Fail(s, at);
    if (s.ok()) context.control_inputs.push_back(n.node);
  }
  return context;
}

BuildContext BesideNode(BuildContext context, const Output& node, const std::source_location& at) {
  const Status s = context.CheckBuilt(node, "what new nodes shall be placed beside");
  if (!s.ok()) context.Fail(s, at);
  if (!s.ok()) return context;
  context.colocated_with.push_back(StrCat("loc:@", node.node->name()));
  context.device = node.node->requested_device();
  context.device_function = nullptr;
  return context;
}

BuildContext Into(Graph& graph) {
  BuildContext context;
  context.graph = &graph;
  return context;
}

BuildContext AtRootOf(const BuildContext& context) {
  BuildContext root = Into(*context.graph);
  root.caller = context.caller;
  root.flow = context.flow;
  return root;
}

BuildContext WithoutControlInputs(BuildContext context) {
  context.control_inputs.clear();
  context.flow = nullptr;
  return context;
}

BuildContext Inside(BuildContext context, FlowContext* flow) {
  context.control_inputs.clear();
  context.flow = flow;
  return context;
}

BuildContext From(BuildContext context, const std::source_location& caller) {
  if (!context.caller) context.caller = caller;
  return context;
}

}  // namespace

void BuildContext::Fail(const Status& error, const std::source_location& at) const {
  if (!graph->error().ok()) return;
  const std::string place = ToString(caller.value_or(at));
  // A tensor without a value names where it was made, which may be here.
  const bool is_named = Message(error).starts_with(place + ": ");
  graph->Fail(is_named ? error : Annotate(error, place));
}

Status BuildContext::CheckBuilt(const Output& value, std::string_view what) const {
  if (value.node == nullptr) return InvalidArgument(what, " has no value");
  const int id = value.node->id();
  if (id < 0 || id >= graph->num_ids() || graph->node(id) != value.node) {
    return InvalidArgument(what, " is of another graph than the one being built");
  }
  return OkStatus();
}

Status BuildContext::CheckValue(const Output& value, std::string_view what) const {
  TENON_RETURN_IF_ERROR(CheckBuilt(value, what));
  const int outputs = value.node->num_outputs();
  if (value.index >= 0 && value.index < outputs) return OkStatus();
  return InvalidArgument(what, " is output ", value.index, " of node '", value.node->name(), "' (",
                         value.node->op(), "), which has ", outputs);
}

const BuildContext& CurrentBuilding(const std::source_location& at) {
  if (current == nullptr) {
    std::cerr << ToString(at) << ": no graph is being built: enter one with GraphBuilding\n";
    std::abort();
  }
  return *current;
}

EnteredContext::EnteredContext(BuildContext context)
    : context_(std::move(context)), outer_(current) {
  current = &context_;
}
EnteredContext::~EnteredContext() {
  TENON_CHECK(current == &context_);  // left in the reverse order, on the thread that entered
  current = outer_;
}

GraphBuilding::GraphBuilding(Graph& graph) : EnteredContext(Into(graph)) {}
NameScope::NameScope(std::string_view name, const Location& at)
    : EnteredContext(WithPrefix(CurrentBuilding(at), name, at)) {}
DeviceScope::DeviceScope(std::string_view device, const Location& at)
    : EnteredContext(WithDevice(CurrentBuilding(at), device, at)) {}
DeviceScope::DeviceScope(DeviceFunction function, const Location& at)
    : EnteredContext(WithDevice(CurrentBuilding(at), std::move(function))) {}
ControlDependencies::ControlDependencies(const std::vector<Output>& nodes, const Location& at)
    : EnteredContext(After(CurrentBuilding(at), nodes, at)) {}
ColocateWith::ColocateWith(const Output& node, const Location& at)
    : EnteredContext(BesideNode(CurrentBuilding(at), node, at)) {}
NoControlDependencies::NoControlDependencies(const Location& at)
    : EnteredContext(WithoutControlInputs(CurrentBuilding(at))) {}
AtRoot::AtRoot(const Location& at) : EnteredContext(AtRootOf(CurrentBuilding(at))) {}
CalledFrom::CalledFrom(const std::source_location& caller)
    : EnteredContext(From(CurrentBuilding(caller), caller)) {}

InFlow::InFlow(FlowContext* flow) : EnteredContext(Inside(CurrentBuilding(), flow)) {}

std::string UnusedScope(const std::string& name, const std::source_location& at) {
  const BuildContext& context = CurrentBuilding(at);
  StringSet used;
  const std::string begin = context.prefix + name;
  for (const Node* node : context.graph->nodes()) {
    if (!node->name().starts_with(begin)) continue;
    const size_t end = node->name().find('/', begin.size());
    if (end != std::string::npos) {
      used.insert(node->name().substr(context.prefix.size(), end - context.prefix.size()));
    }
  }
  std::string scope = name;
  for (int i = 1; used.contains(scope); ++i) scope = StrCat(name, "_", i);
  return scope;
}

void SetRandomSeed(int64_t seed, const std::source_location& at) {
  CurrentBuilding(at).graph->seeds().graph_seed = seed;
}

std::pair<int64_t, int64_t> NextSeeds(int64_t op_seed, const std::source_location& at) {
  constexpr int64_t kDefaultGraphSeed = 87654321, kModulus = INT32_MAX;
  const auto truncated = [](int64_t seed) { return (seed % kModulus + kModulus) % kModulus; };
  Graph::Seeds& seeds = CurrentBuilding(at).graph->seeds();
  if (!seeds.graph_seed && op_seed == 0) return {0, 0};
  const int64_t first = truncated(seeds.graph_seed.value_or(kDefaultGraphSeed));
  const int64_t second = truncated(op_seed != 0 ? op_seed : seeds.seedless_ops++);
  // (0, 0) would mean another sequence each time.
  if (first == 0 && second == 0) return {0, kModulus};
  return {first, second};
}

}  // namespace tenon
