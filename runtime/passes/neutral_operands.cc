// SPDX-License-Identifier: Apache-2.0
#include "core/dtype.h"
#include "core/hash_map.h"
#include "runtime/passes/pass.h"

namespace tenon {
namespace {

/// Whether `in` is a constant with a single element, which is `number`, of a real dtype.
bool IsConstant(const Endpoint& in, int number) {
  if (in.node->op() != "Const") return false;
  const Attribute* const attr = in.node->attrs().Find("value");
  const Tensor* const value = attr == nullptr ? nullptr : attr->get_if<Tensor>();
  if (value == nullptr || value->num_elements() != 1) return false;
  bool is_number = false;
  Dispatch(value->dtype(), RealTypes(), [&]<typename T>(T) {
    is_number = value->data<T>()[0] == T(static_cast<float>(number));
  });
  return is_number;
}

/// Whether the constant adds no dimensions to the other operand.
bool KeepsShape(const Endpoint& constant, const Endpoint& other) {
  const int rank = constant.node->output_shape(constant.index).rank();
  const PartialShape& shape = other.node->output_shape(other.index);
  return rank == 0 || (rank > 0 && shape.rank_known() && rank <= shape.rank());
}

/// Which operand is what the node computes, to the last bit; -1 for none. Sums are not among them:
/// -0 + 0 is 0.
int ResultOf(const Node& node) {
  const bool product = node.op() == "Mul";
  const bool quotient = node.op() == "RealDiv" || node.op() == "Div";
  if (!product && !quotient && node.op() != "Sub") return -1;
  for (const int constant : {1, 0}) {
    if (constant == 0 && !product) break;
    const Endpoint &in = node.input(constant), &other = node.input(1 - constant);
    if (IsConstant(in, node.op() == "Sub" ? 0 : 1) && KeepsShape(in, other)) return 1 - constant;
  }
  return -1;
}

}  // namespace

StatusOr<bool> RemoveNeutralOperands(Graph* graph, const PassContext&) {
  std::vector<Node*> removed, constants;
  flat_hash_set<Node*> unused;
  for (Node* const node : graph->nodes()) {
    const int result = ResultOf(*node);
    // What waits for the node would no longer wait for its control inputs.
    if (result < 0 || !node->control_inputs().empty()) continue;
    const Endpoint value = node->input(result);
    // A reference may stand for another value when it is read later.
    if (IsRef(value.node->output_type(value.index))) continue;
    TENON_RETURN_IF_ERROR(graph->ReplaceUses({node, 0}, value));
    const std::vector<OutEdge> rest = node->out_edges();
    for (const OutEdge& e : rest) graph->AddControlEdge(value.node, e.dst);
    removed.push_back(node);
    constants.push_back(node->input(1 - result).node);
  }
  graph->RemoveNodes(removed);
  for (Node* const c : constants) {
    if (c->out_edges().empty() && c->control_inputs().empty()) unused.insert(c);
  }
  graph->RemoveNodes({unused.begin(), unused.end()});
  return !removed.empty();
}

}  // namespace tenon
