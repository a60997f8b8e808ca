// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/base/hash_map.h"
#include "core/op/op_traits.h"
#include "runtime/passes/bypass.h"
#include "runtime/passes/elementwise_groups.h"
#include "runtime/passes/pass.h"
#include "runtime/passes/passes.h"

namespace tenon {
namespace {

constexpr std::string_view kFused = "_FusedElementwise";
/// What a node of that op may have, at most.
constexpr size_t kMostSteps = 32;
/// Values of fewer elements are in the first cache in any case.
constexpr int64_t kFewElements = 64;
/// To fuse more nodes of unknown rank than that may take longer than steps of scalars win by it.
constexpr int64_t kManyNodes = 10000;

bool IsFused(DType type) {
  return type == DType::kFloat || type == DType::kDouble || type == DType::kHalf ||
         type == DType::kBFloat16 || type == DType::kComplex64 || type == DType::kComplex128;
}

/// Whether the kernel of a node with these arguments computes elements of one type alone.
bool HasKind(const Node& node) {
  if (!node.schema().Has(OpTrait::kElementwise) || node.num_outputs() != 1 ||
      !IsFused(node.output_type(0))) {
    return false;
  }
  const auto& types = node.input_types();
  return std::all_of(types.begin(), types.end(), [&](DType t) { return t == node.output_type(0); });
}

bool MayBeLarge(const Node& node) {
  return node.output_shape(0).num_elements().value_or(kFewElements) >= kFewElements;
}

/// The nodes that one node takes the place of, and what it takes and gives.
struct Fusion {
  /// `steps` has -1 for each node of the graph, by number, before and after.
  Fusion(const std::vector<Node*>& group, std::vector<int>* steps);

  std::string name, requested_device, assigned_device;
  AttributeMap attrs;
  std::vector<Endpoint> inputs;
  std::vector<Endpoint> results;
  std::vector<OutEdge> out_edges;  // with the output as numbered in the new node
};

Fusion::Fusion(const std::vector<Node*>& group, std::vector<int>* steps)
    : name(group.back()->name()),
      requested_device(group.back()->requested_device()),
      assigned_device(group.back()->assigned_device()) {
  for (size_t k = 0; k < group.size(); ++k) (*steps)[group[k]->id()] = static_cast<int>(k);
  const auto step_of = [&](const Node* node) { return (*steps)[node->id()]; };
  const auto input_of = [&](const Endpoint& e) {
    const auto found = std::find(inputs.begin(), inputs.end(), e);
    if (found == inputs.end()) inputs.push_back(e);
    return found - inputs.begin();
  };
  for (const Node* n : group) {
    for (const Endpoint& e : n->inputs()) {
      if (step_of(e.node) < 0) input_of(e);
    }
  }
  const auto n = static_cast<int64_t>(inputs.size());
  std::vector<std::string> names, ops;
  std::vector<int64_t> operands, numbers;
  for (Node* const node : group) {
    names.push_back(node->name());
    ops.push_back(node->op());
    for (int i = 0; i < 2; ++i) {
      if (i >= node->num_inputs()) {
        operands.push_back(-1);
        continue;
      }
      const int step = step_of(node->input(i).node);
      operands.push_back(step < 0 ? input_of(node->input(i)) : n + step);
    }
    bool is_result = false;
    for (OutEdge e : node->out_edges()) {
      if (step_of(e.dst) >= 0) continue;
      is_result = true;
      e.output = static_cast<int>(results.size());
      out_edges.push_back(e);
    }
    if (!is_result) continue;
    results.push_back({node, 0});
    numbers.push_back(step_of(node));
  }
  for (const Node* node : group) (*steps)[node->id()] = -1;
  attrs = {{"N", n},
           {"M", static_cast<int64_t>(results.size())},
           {"T", group.back()->output_type(0)},
           {"ops", std::move(ops)},
           {"names", std::move(names)},
           {"operands", std::move(operands)},
           {"results", std::move(numbers)}};
}

/// All at once, since removing nodes one by one takes time that is quadratic in their neighbours.
Status Replace(Graph* graph, const std::vector<Node*>& old, std::vector<Fusion>* fusions) {
  std::vector<bool> is_gone(graph->num_ids(), false);
  for (const Node* node : old) is_gone[node->id()] = true;
  for (Fusion& f : *fusions) {
    // The others have their inputs of themselves.
    std::erase_if(f.out_edges, [&](const OutEdge& e) { return is_gone[e.dst->id()]; });
  }
  graph->RemoveNodes(old);
  std::vector<Node*> made;
  flat_hash_map<const Node*, Endpoint> now;  // of a node that is gone
  for (const Fusion& f : *fusions) {
    TENON_ASSIGN_OR_RETURN(Node* const node, graph->AddNode(f.name, kFused, f.attrs));
    node->set_requested_device(f.requested_device);
    node->set_assigned_device(f.assigned_device);
    for (size_t r = 0; r < f.results.size(); ++r) {
      now[f.results[r].node] = {node, static_cast<int>(r)};
    }
    made.push_back(node);
  }
  for (size_t k = 0; k < fusions->size(); ++k) {
    const Fusion& f = (*fusions)[k];
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      const Endpoint& in = f.inputs[i];
      const auto found = now.find(in.node);
      TENON_RETURN_IF_ERROR(
          graph->Connect(found == now.end() ? in : found->second, made[k], static_cast<int>(i)));
    }
    for (const OutEdge& e : f.out_edges) {
      TENON_RETURN_IF_ERROR(graph->Connect({made[k], e.output}, e.dst, e.input));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<bool> FuseElementwise(Graph* graph, const PassContext& context) {
  const std::vector<Node*> nodes = graph->nodes();
  const auto is_unknown = [](const Node* n) {
    return HasKind(*n) && n->output_shape(0).rank() < 0;
  };
  const bool few = std::count_if(nodes.begin(), nodes.end(), is_unknown) <= kManyNodes;
  const auto may_join = [few](const Node& n) {
    return HasKind(n) && MayBeLarge(n) && (few || n.output_shape(0).rank() >= 0);
  };
  const bool any = std::any_of(nodes.begin(), nodes.end(), [&](const Node* n) {
    return may_join(*n) && std::any_of(n->out_edges().begin(), n->out_edges().end(),
                                       [&](const OutEdge& e) { return may_join(*e.dst); });
  });
  const OpRegistration* const fused = any ? graph->registry().Find(kFused) : nullptr;
  if (fused == nullptr ||
      fused->FindKernel(context.device->kind(), {{"T", DType::kFloat}}) == nullptr)
    return false;
  ViewsOfVariables views;
  TENON_ASSIGN_OR_RETURN(const auto groups, FindGroups(*graph, [&](const Node& node) {
                           views.Meet(node);
                           return may_join(node) && !HasControlEdges(node) &&
                                  std::none_of(node.inputs().begin(), node.inputs().end(),
                                               [&](const Endpoint& e) { return views.Has(e); });
                         }));
  std::vector<Node*> old;
  std::vector<Fusion> fusions;
  std::vector<int> steps(graph->num_ids(), -1);
  for (const std::vector<Node*>& group : groups) {
    // A beginning of a group, in its order, needs nothing of the rest.
    for (size_t begin = 0; begin + 1 < group.size(); begin += kMostSteps) {
      const size_t end = std::min(group.size(), begin + kMostSteps);
      const std::vector<Node*> part(group.begin() + begin, group.begin() + end);
      Fusion fusion(part, &steps);
      if (fusion.results.empty()) continue;  // nobody asks for any of it
      old.insert(old.end(), part.begin(), part.end());
      fusions.push_back(std::move(fusion));
    }
  }
  if (fusions.empty()) return false;
  TENON_RETURN_IF_ERROR(Replace(graph, old, &fusions));
  return true;
}

}  // namespace tenon
