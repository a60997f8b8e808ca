// SPDX-License-Identifier: Apache-2.0
#include "runtime/passes/pass.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/replace_nodes.h"

namespace tenon {
namespace {

/// A Relu that max pooling alone uses, and their gradients.
struct PooledRelu {
  Node *relu, *pool;
  /// Pairs of the pooling's gradient and the Relu's, which is the only user of the former.
  std::vector<std::pair<Node*, Node*>> gradients;
};

/// What uses `relu`, or nothing when it is more than pooling and gradients.
bool FindUses(Node* relu, PooledRelu* found) {
  *found = {relu, nullptr, {}};
  for (const OutEdge& e : relu->out_edges()) {
    if (e.dst->op() != "_MaxPoolWithPlaces") continue;
    if (found->pool != nullptr) return false;
    found->pool = e.dst;
  }
  if (found->pool == nullptr) return false;
  for (const OutEdge& e : relu->out_edges()) {
    if (e.dst->op() != "ReluGrad") continue;
    Node* const of_pool = e.dst->input(0).node;
    const bool follows = e.input == 1 && of_pool->op() == "_MaxPoolGradOfPlaces" &&
                         of_pool->input(0) == Endpoint{relu, 0} &&
                         of_pool->input(1) == Endpoint{found->pool, 1} &&
                         of_pool->out_edges().size() == 1;
    if (!follows) return false;
    found->gradients.emplace_back(of_pool, e.dst);
  }
  // The pooling, and two uses of each gradient: no others, none that waits.
  size_t places = 0;
  for (const OutEdge& e : found->pool->out_edges()) places += e.output == 1;
  return relu->out_edges().size() == 1 + 2 * found->gradients.size() &&
         places == found->gradients.size();
}

/// `by` in the place of `last`, which also waits for what `first` waited for.
Replaced Both(const Node& first, Node* last, std::string_view by, const AttributeMap& windows,
              std::vector<Endpoint> inputs) {
  Replaced both(last, by, windows, std::move(inputs));
  const auto& before = first.control_inputs();
  both.control_inputs.insert(both.control_inputs.end(), before.begin(), before.end());
  return both;
}

}  // namespace

StatusOr<bool> ComputeReluInPooling(Graph* graph, const PassContext& context) {
  const std::vector<Node*> relus = NodesOf(*graph, "Relu");
  if (relus.empty()) return false;
  const OpRegistration* const pooling = graph->registry().Find("_ReluMaxPoolWithPlaces");
  if (pooling == nullptr) return false;
  std::vector<Replaced> replaced;
  std::vector<Node*> removed;
  PooledRelu p;
  for (Node* const node : relus) {
    if (!FindUses(node, &p) ||
        pooling->FindKernel(context.device->kind(), p.pool->attrs()) == nullptr) {
      continue;
    }
    const Endpoint in = p.relu->input(0);
    // What a reference stands for may be another value when the gradient is computed.
    if (IsRef(in.node->output_type(in.index))) continue;
    replaced.push_back(Both(*p.relu, p.pool, "_ReluMaxPoolWithPlaces", p.pool->attrs(), {in}));
    removed.push_back(p.relu);
    for (const auto& [of_pool, of_relu] : p.gradients) {
      replaced.push_back(Both(*of_pool, of_relu, "_ReluMaxPoolGradOfPlaces", of_pool->attrs(),
                              {in, {p.pool, 1}, of_pool->input(2)}));
      removed.push_back(of_pool);
    }
  }
  if (replaced.empty()) return false;
  TENON_RETURN_IF_ERROR(ReplaceNodes(graph, replaced, removed));
  return true;
}

}  // namespace tenon
