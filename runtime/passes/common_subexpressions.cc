// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/hash_map.h"
#include "runtime/frames.h"
#include "runtime/passes/pass.h"

namespace tenon {
namespace {

bool MayMerge(const Node& node) {
  if (node.is_stateful() || node.num_outputs() == 0 || FlowKindOf(node) != FlowKind::kPlain ||
      node.op().starts_with("Placeholder") || node.op().starts_with('_') ||
      node.op() == "ReadFile") {  // what it gives depends on the time
    return false;
  }
  for (int i = 0; i < node.num_inputs(); ++i) {
    // Two reads of a variable may see different values.
    const Endpoint& in = node.input(i);
    const DType type = in.node->output_type(in.index);
    if (IsRef(type) || type == DType::kResource) return false;
  }
  return std::none_of(node.output_types().begin(), node.output_types().end(), [](DType t) {
    return IsRef(t) || t == DType::kResource || t == DType::kVariant;
  });
}

/// Text that is the same for nodes that may be equal; big constants enter by their size only.
std::string Signature(const Node& node) {
  std::string key = StrCat(node.op(), "@", node.assigned_device());
  for (const Endpoint& in : node.inputs()) StrAppend(&key, ",", in.node->id(), ":", in.index);
  std::vector<int> controls;
  for (const Node* c : node.control_inputs()) controls.push_back(c->id());
  std::sort(controls.begin(), controls.end());
  for (const int c : controls) StrAppend(&key, ",^", c);
  for (const auto& [name, value] : node.attrs()) {
    if (!name.starts_with('_')) StrAppend(&key, ";", name, "=", value.ToString());
  }
  return key;
}

bool SameAttrs(const Node& a, const Node& b) {
  const auto covers = [](const Node& x, const Node& y) {
    for (const auto& [name, value] : x.attrs()) {
      if (name.starts_with('_')) continue;
      const Attribute* other = y.attrs().Find(name);
      if (other == nullptr || !value.Equals(*other)) return false;
    }
    return true;
  };
  return covers(a, b) && covers(b, a);
}

}  // namespace

Status MergeCommonSubexpressions(Graph* graph, const PassContext&) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  StringMap<std::vector<Node*>> seen;
  for (Node* node : order) {
    if (!MayMerge(*node)) continue;
    std::vector<Node*>& candidates = seen[Signature(*node)];
    const auto twin = std::find_if(candidates.begin(), candidates.end(),
                                   [&](const Node* c) { return SameAttrs(*c, *node); });
    if (twin == candidates.end()) {
      candidates.push_back(node);
      continue;
    }
    for (int i = 0; i < node->num_outputs(); ++i) {
      TENON_RETURN_IF_ERROR(graph->ReplaceUses({node, i}, {*twin, i}));
    }
    const std::vector<OutEdge> rest = node->out_edges();
    for (const OutEdge& e : rest) graph->AddControlEdge(*twin, e.dst);
    graph->RemoveNode(node);
  }
  return OkStatus();
}

}  // namespace tenon
