// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/hash_map.h"
#include "core/graph/graph.h"
#include "runtime/execute/node_identity.h"
#include "runtime/passes/passes.h"

namespace tenon {
namespace {

/// Nodes that only look alike are not compared with each other for ever.
constexpr size_t kMaxCandidates = 64;
/// A node with more outputs is left alone: to move the consumers of each costs more than it saves.
constexpr int kMaxMergedOutputs = 64;

bool MayMerge(const Node& node) {
  if (!node.is_pure() || node.num_outputs() == 0 || node.num_outputs() > kMaxMergedOutputs ||
      node.flow() != FlowKind::kPlain || node.is_placeholder() || node.schema().is_internal()) {
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

/// Text that is the same for nodes that may be equal. Those of `merged` are about to leave.
std::string ValueKey(const Node& node, const flat_hash_set<const Node*>& merged) {
  std::string key = NodeDigest(node);
  for (const Endpoint& in : node.inputs()) StrAppend(&key, ",", in.node->id(), ":", in.index);
  std::vector<int> controls;
  for (const Node* c : node.control_inputs()) {
    if (!merged.contains(c)) controls.push_back(c->id());
  }
  std::sort(controls.begin(), controls.end());
  for (const int c : controls) StrAppend(&key, ",^", c);
  return key;
}

}  // namespace

StatusOr<bool> MergeCommonSubexpressions(Graph* graph, const PassContext&) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  StringMap<std::vector<Node*>> seen;
  flat_hash_set<const Node*> merged;
  std::vector<Node*> removed;
  for (Node* node : order) {
    if (!MayMerge(*node)) continue;
    std::vector<Node*>& candidates = seen[ValueKey(*node, merged)];
    const auto twin = std::find_if(candidates.begin(), candidates.end(), [&](const Node* c) {
      return SameAttrs(c->attrs(), node->attrs());
    });
    if (twin == candidates.end()) {
      if (candidates.size() < kMaxCandidates) candidates.push_back(node);
      continue;
    }
    for (int i = 0; i < node->num_outputs(); ++i) {
      TENON_RETURN_IF_ERROR(graph->ReplaceUses({node, i}, {*twin, i}));
    }
    const std::vector<OutEdge> rest = node->out_edges();
    for (const OutEdge& e : rest) graph->AddControlEdge(*twin, e.dst);
    merged.insert(node);
    removed.push_back(node);
  }
  graph->RemoveNodes(removed);
  return !removed.empty();
}

}  // namespace tenon
