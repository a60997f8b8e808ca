// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "core/base/exceptions.h"
#include "core/base/interruption.h"
#include "core/graph/graph.h"
#include "runtime/execute/kernel_cache.h"
#include "runtime/execute/time_limit.h"
#include "runtime/passes/pass.h"
#include "runtime/passes/passes.h"

namespace tenon {
namespace {

/// Larger results are cheaper to compute in each step than to keep and to send.
constexpr size_t kMaxFoldedBytes = 10 << 20;
/// What all nodes that are folded in one graph may read and write: a graph of a few bytes may ask
/// for any number of large results, and nothing ends a compilation that computes them.
constexpr size_t kMaxBytesOfGraph = 256 << 20;
constexpr int kMaxFoldedOutputs = 64;
/// What takes longer is computed by the steps, which can be cancelled.
constexpr std::chrono::seconds kMaxTimeOfGraph{2};

/// Gives no block that is larger than a folded result may be, so that a kernel asked for more
/// refuses before it computes anything. Lives for ever, as the folded tensors' memory needs.
class FoldingAllocator final : public Allocator {
 public:
  explicit FoldingAllocator(Allocator& host) : host_(host) {}
  std::string_view name() const override { return host_.name(); }
  void* Allocate(size_t bytes) override {
    return bytes > kMaxFoldedBytes ? nullptr : host_.Allocate(bytes);
  }
  void Free(void* memory, size_t bytes) override { host_.Free(memory, bytes); }
  bool IsHostMemory() const override { return true; }
  int64_t bytes_in_use() const override { return host_.bytes_in_use(); }

 private:
  Allocator& host_;
};

/// The CPU device with that allocator.
class FoldingDevice final : public Device {
 public:
  explicit FoldingDevice(Device& cpu) : cpu_(cpu) {}
  const std::string& name() const override { return cpu_.name(); }
  DeviceKind kind() const override { return cpu_.kind(); }
  uint64_t incarnation() const override { return cpu_.incarnation(); }
  int64_t memory_limit() const override { return cpu_.memory_limit(); }
  Allocator& allocator() override {
    static auto* const allocator = new FoldingAllocator(CpuAllocator());
    return *allocator;
  }
  ResourceStore& resources() override { return cpu_.resources(); }
  const FileAccess& files() const override { return cpu_.files(); }

 private:
  Device& cpu_;
};

/// Whether the outputs are known beforehand to be too large, which would take long to find out.
bool IsLarge(const Node& node) {
  double bytes = 0;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!node.output_shape(i).IsFullyKnown()) continue;
    double elements = 1;
    for (const int64_t d : node.output_shape(i).dims()) elements *= static_cast<double>(d);
    bytes += elements * static_cast<double>(std::max<size_t>(SizeOf(node.output_type(i)), 1));
  }
  return bytes > static_cast<double>(kMaxFoldedBytes);
}

/// The nodes that were folded and leave the graph together at the end: nothing waits for them.
class FoldedNodes {
 public:
  explicit FoldedNodes(const Graph& graph) : folded_(graph.num_ids(), false) {}
  void Add(Node* node) {
    folded_[node->id()] = true;
    nodes_.push_back(node);
  }
  const std::vector<Node*>& nodes() const { return nodes_; }
  /// Whether `node` waits for any other.
  bool IsWaiting(const Node& node) const {
    const auto& controls = node.control_inputs();
    return !std::all_of(controls.begin(), controls.end(),
                        [&](const Node* c) { return folded_[c->id()]; });
  }

 private:
  std::vector<bool> folded_;
  std::vector<Node*> nodes_;
};

bool MayFold(const Node& node, const FoldedNodes& folded) {
  if (node.is_constant() || !node.is_pure() || node.num_inputs() == 0 || node.num_outputs() == 0 ||
      node.num_outputs() > kMaxFoldedOutputs || folded.IsWaiting(node) ||
      node.flow() != FlowKind::kPlain || node.is_placeholder() || node.schema().is_internal()) {
    return false;
  }
  for (const DType t : node.output_types()) {
    // The length of text is not known before it is made.
    if (!IsPlain(t)) return false;
  }
  return std::all_of(node.inputs().begin(), node.inputs().end(), [&](const Endpoint& in) {
    // A constant that waits for something is made when that has happened, in its loop or branch.
    return in.node->is_constant() && !folded.IsWaiting(*in.node);
  });
}

/// The outputs of `node` on constant inputs; empty when the kernel refuses, so that the error comes
/// when, and only if, the node runs.
std::vector<Value> Evaluate(const Node& node, Device& device, size_t* budget) {
  std::vector<Value> inputs, outputs(node.num_outputs());
  for (const Endpoint& in : node.inputs()) {
    const Tensor& value = *in.node->attrs().Find("value")->get_if<Tensor>();
    if (value.num_bytes() > *budget) return {};
    *budget -= value.num_bytes();
    inputs.push_back({value, nullptr});
  }
  KernelCache kernels;
  auto kernel = kernels.Get(node, device);
  if (!kernel.ok() || (*kernel)->is_async()) return {};
  const ProgramRun run;
  const DeviceRun on_device{run, device};
  KernelContext ctx(on_device, node.output_types(), inputs.data(), node.num_inputs(),
                    outputs.data());
  const Status computed = CatchExceptions([&] { return (*kernel)->Compute(ctx); });
  if (!computed.ok() || Interrupted()) return {};
  size_t bytes = 0;
  for (const Value& v : outputs) {
    if (!v.tensor.valid()) return {};
    bytes += v.tensor.num_bytes();
  }
  if (bytes > kMaxFoldedBytes || bytes > *budget) return {};
  *budget -= bytes;
  return outputs;
}

StatusOr<bool> Fold(Graph* graph, const PassContext& context) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  FoldingDevice device(*context.device);
  size_t budget = kMaxBytesOfGraph;
  FoldedNodes done(*graph);
  Cancellation cancellation;
  std::optional<TimeLimit> limit;
  const InterruptibleBy interruption(&cancellation);
  for (Node* node : order) {
    if (Interrupted()) break;
    if (!MayFold(*node, done) || IsLarge(*node)) continue;
    if (!limit) limit.emplace(cancellation, kMaxTimeOfGraph, Cancelled("folding takes too long"));
    const std::vector<Value> values = Evaluate(*node, device, &budget);
    if (values.empty()) continue;
    for (int i = 0; i < node->num_outputs(); ++i) {
      TENON_ASSIGN_OR_RETURN(
          Node * folded,
          graph->AddNode(graph->UniqueName(StrCat(node->name(), "/folded")), "Const",
                         {{"dtype", values[i].tensor.dtype()}, {"value", values[i].tensor}}, {}));
      folded->set_assigned_device(node->assigned_device());
      TENON_RETURN_IF_ERROR(graph->ReplaceUses({node, i}, {folded, 0}));
    }
    // What only waited for the node may start at once; the node itself goes.
    done.Add(node);
  }
  const int nodes_before = graph->num_nodes();
  graph->RemoveNodes(done.nodes());
  // Constants that fed only folded nodes.
  for (Node* node : graph->nodes()) {
    if (node->is_constant() && node->out_edges().empty() && node->control_inputs().empty()) {
      graph->RemoveNode(node);
    }
  }
  return graph->num_nodes() != nodes_before;
}

}  // namespace

StatusOr<bool> FoldConstants(Graph* graph, const PassContext& context) {
  return CatchExceptions([&] { return Fold(graph, context); });
}

}  // namespace tenon
