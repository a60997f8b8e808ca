// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/exceptions.h"
#include "runtime/frames.h"
#include "runtime/kernel_cache.h"
#include "runtime/passes/pass.h"

namespace tenon {
namespace {

/// Larger results are cheaper to compute in each step than to keep and to send.
constexpr size_t kMaxFoldedBytes = 10 << 20;

/// Whether it is known beforehand that the outputs are too large, which would take long to find out.
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

bool IsConstant(const Node& node) { return node.op() == "Const"; }

bool MayFold(const Node& node) {
  if (IsConstant(node) || node.is_stateful() || node.num_inputs() == 0 ||
      node.num_outputs() == 0 || !node.control_inputs().empty() ||
      FlowKindOf(node) != FlowKind::kPlain || node.op().starts_with("Placeholder") ||
      node.op().starts_with('_') ||
      node.op() == "ReadFile") {  // what it gives depends on place and time
    return false;
  }
  for (const DType t : node.output_types()) {
    if (IsRef(t) || t == DType::kResource || t == DType::kVariant) return false;
  }
  return std::all_of(node.inputs().begin(), node.inputs().end(), [](const Endpoint& in) {
    // A constant that waits for something is made when that has happened, in its loop or branch.
    return IsConstant(*in.node) && in.node->control_inputs().empty();
  });
}

/// The outputs of `node` on constant inputs; empty when the kernel refuses, so that the error comes
/// when, and only if, the node runs.
std::vector<Value> Evaluate(const Node& node, const PassContext& context) {
  KernelCache kernels;
  auto kernel = kernels.Get(node, *context.cpu);
  if (!kernel.ok() || (*kernel)->is_async()) return {};
  std::vector<Value> inputs, outputs(node.num_outputs());
  for (const Endpoint& in : node.inputs()) {
    const Attribute* value = in.node->attrs().Find("value");
    inputs.push_back({*value->get_if<Tensor>(), nullptr});
  }
  StepContext step;
  step.device = context.cpu;
  KernelContext ctx(step, node.output_types(), inputs.data(), node.num_inputs(), outputs.data());
  if (!CatchExceptions([&] { return (*kernel)->Compute(ctx); }).ok()) return {};
  size_t bytes = 0;
  for (const Value& v : outputs) {
    if (!v.tensor.valid()) return {};
    bytes += v.tensor.num_bytes();
  }
  return bytes > kMaxFoldedBytes ? std::vector<Value>() : outputs;
}

}  // namespace

Status FoldConstants(Graph* graph, const PassContext& context) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  for (Node* node : order) {
    if (!MayFold(*node) || IsLarge(*node)) continue;
    const std::vector<Value> values = Evaluate(*node, context);
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
    graph->RemoveNode(node);
  }
  // Constants that fed only folded nodes.
  for (Node* node : graph->nodes()) {
    if (IsConstant(*node) && node->out_edges().empty() && node->control_inputs().empty()) {
      graph->RemoveNode(node);
    }
  }
  return OkStatus();
}

}  // namespace tenon
