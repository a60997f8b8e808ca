// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/hash_map.h"
#include "core/tensor/dtype.h"
#include "runtime/passes/bypass.h"
#include "runtime/passes/passes.h"

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
