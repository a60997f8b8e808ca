// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/hash_map.h"
#include "core/op/op_traits.h"
#include "core/tensor/dtype.h"
#include "runtime/passes/pass.h"

namespace tenon {
namespace {

/// Whether `in` is a scalar constant one, of a real dtype. One that waits for something may be
/// dead, and what it is multiplied by with it.
bool IsOne(const Endpoint& in) {
  if (!in.node->is_constant() || !in.node->control_inputs().empty()) return false;
  const Attribute* const attr = in.node->attrs().Find("value");
  const Tensor* const value = attr == nullptr ? nullptr : attr->get_if<Tensor>();
  if (value == nullptr || value->rank() != 0) return false;
  bool is_one = false;
  Dispatch(value->dtype(), RealTypes(),
           [&]<typename T>(T) { is_one = value->scalar<T>() == T(1.0f); });
  return is_one;
}

/// Which operand is what the node computes (but for denormal numbers, which kernels take for 0); -1
/// for none.
int ResultOf(const Node& node) {
  const NeutralOne neutral = node.schema().neutral_one;
  if (neutral == NeutralOne::kNone) return -1;
  if (IsOne(node.input(1))) return 0;
  return neutral == NeutralOne::kEither && IsOne(node.input(0)) ? 1 : -1;
}

/// Nodes, met in topological order, whose outputs are references or may have a variable's memory,
/// as TensorFlow's servers let them: read later, they may be other values. A product is a copy.
class ViewsOfVariables {
 public:
  void Meet(const Node& node) {
    const bool passes_on = node.schema().Has(OpTrait::kMayShare);
    // A read gives the value of one moment.
    if (!passes_on && node.schema().Has(OpTrait::kReadsVariable)) return;
    for (const Endpoint& in : node.inputs()) {
      const DType type = in.node->output_type(in.index);
      // Queues, arrays and lists give what was put there.
      const bool is_kept = IsRef(type) || type == DType::kResource || type == DType::kVariant;
      if (passes_on ? Has(in) : is_kept) views_.insert(&node);
    }
  }
  bool Has(const Endpoint& value) const {
    return IsRef(value.node->output_type(value.index)) || views_.contains(value.node);
  }

 private:
  flat_hash_set<const Node*> views_;
};

/// What waits for a node, or what it waits for, need not be what waits for its operand.
bool HasControlEdges(const Node& node) {
  const auto is_control = [](const OutEdge& e) { return e.output == kControlSlot; };
  return !node.control_inputs().empty() ||
         std::any_of(node.out_edges().begin(), node.out_edges().end(), is_control);
}

}  // namespace

StatusOr<bool> RemoveNeutralOperands(Graph* graph, const PassContext&) {
  const std::vector<Node*> nodes = graph->nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const Node* n) { return ResultOf(*n) >= 0; })) {
    return false;
  }
  // In this order, so that the consumers of a chain of products move once.
  TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  std::vector<Node*> removed, constants;
  ViewsOfVariables views;
  for (Node* const node : order) {
    views.Meet(*node);
    const int result = ResultOf(*node);
    if (result < 0 || HasControlEdges(*node) || views.Has(node->input(result))) continue;
    TENON_RETURN_IF_ERROR(graph->ReplaceUses({node, 0}, node->input(result)));
    removed.push_back(node);
    constants.push_back(node->input(1 - result).node);
  }
  graph->RemoveNodes(removed);
  flat_hash_set<Node*> unused;
  for (Node* const c : constants) {
    if (c->out_edges().empty()) unused.insert(c);
  }
  graph->RemoveNodes({unused.begin(), unused.end()});
  return !removed.empty();
}

}  // namespace tenon
