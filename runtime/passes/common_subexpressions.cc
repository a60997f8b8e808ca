// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
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

size_t Hash(const Attribute& attribute) {
  return std::visit(
      [&](const auto& value) -> size_t {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, float>) {
          return absl::HashOf(std::bit_cast<uint32_t>(value));
        } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, std::string> ||
                             std::is_same_v<T, DType>) {
          return absl::HashOf(value);
        } else {
          return absl::HashOf(attribute.ToString());  // of large tensors the beginning
        }
      },
      attribute.value());
}

/// The ids of the nodes that it waits for, without those of `merged`, which are about to leave.
std::vector<int> Controls(const Node& node, const flat_hash_set<const Node*>& merged) {
  std::vector<int> controls;
  for (const Node* c : node.control_inputs()) {
    if (!merged.contains(c)) controls.push_back(c->id());
  }
  std::sort(controls.begin(), controls.end());
  return controls;
}

/// A number that nodes of the same value have in common.
size_t ValueHash(const Node& node, const std::vector<int>& controls) {
  size_t hash = absl::HashOf(&node.registration(), node.assigned_device(), controls);
  for (const Endpoint& in : node.inputs()) hash = absl::HashOf(hash, in.node->id(), in.index);
  for (const auto& [name, value] : node.attrs()) {
    if (!name.starts_with('_')) hash = absl::HashOf(hash, name, Hash(value));
  }
  return hash;
}

/// A node that others may be equal to, and what it waits for.
struct Candidate {
  Node* node;
  std::vector<int> controls;

  bool Equals(const Candidate& other) const {
    return &node->registration() == &other.node->registration() &&
           node->assigned_device() == other.node->assigned_device() &&
           node->inputs() == other.node->inputs() && controls == other.controls &&
           SameAttrs(node->attrs(), other.node->attrs());
  }
};

}  // namespace

StatusOr<bool> MergeCommonSubexpressions(Graph* graph, const PassContext&) {
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  flat_hash_map<size_t, absl::InlinedVector<Candidate, 1>> seen;
  seen.reserve(order.size());
  flat_hash_set<const Node*> merged;
  std::vector<Node*> removed;
  for (Node* node : order) {
    if (!MayMerge(*node)) continue;
    Candidate candidate{node, Controls(*node, merged)};
    auto& candidates = seen[ValueHash(*node, candidate.controls)];
    const auto found = std::find_if(candidates.begin(), candidates.end(),
                                    [&](const Candidate& c) { return c.Equals(candidate); });
    if (found == candidates.end()) {
      if (candidates.size() < kMaxCandidates) candidates.push_back(std::move(candidate));
      continue;
    }
    Node* const twin = found->node;
    for (int i = 0; i < node->num_outputs(); ++i) {
      TENON_RETURN_IF_ERROR(graph->ReplaceUses({node, i}, {twin, i}));
    }
    const std::vector<OutEdge> rest = node->out_edges();
    for (const OutEdge& e : rest) graph->AddControlEdge(twin, e.dst);
    merged.insert(node);
    removed.push_back(node);
  }
  graph->RemoveNodes(removed);
  return !removed.empty();
}

}  // namespace tenon
