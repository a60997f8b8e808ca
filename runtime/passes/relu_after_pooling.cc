// SPDX-License-Identifier: Apache-2.0
#include "runtime/passes/pass.h"
#include "runtime/passes/replace_nodes.h"

// The largest element of a window after Relu is Relu of the largest before it, which is fewer
// elements to compute. So are the gradients: where the largest is not positive, both orders give
// none, and elsewhere it is the same element that is the largest. Of NaNs the same are passed over.

namespace tenon {
namespace {

/// A Relu that max pooling alone uses, and their gradients.
struct PooledRelu {
  Node *relu, *pool;
  /// Of pooling, and of the Relu before it, which alone uses that.
  std::vector<std::pair<Node*, Node*>> gradients;
};

/// What uses `relu`, or nothing when it is more than pooling and gradients.
bool FindUses(Node* relu, PooledRelu* found) {
  *found = {relu, nullptr, {}};
  const std::vector<OutEdge> uses = UsesOf(*relu, 0);
  for (const OutEdge& e : uses) {
    if (e.dst->op() != "_MaxPoolWithPlaces") continue;
    if (found->pool != nullptr) return false;
    found->pool = e.dst;
  }
  // A window that lies beside the image has no largest element.
  if (found->pool == nullptr ||
      found->pool->attrs().GetOr<std::string>("padding", "") == "EXPLICIT") {
    return false;
  }
  for (const OutEdge& e : uses) {
    if (e.dst->op() != "ReluGrad") continue;
    Node* const of_pool = e.dst->input(0).node;
    const bool follows = e.input == 1 && of_pool->op() == "_MaxPoolGradOfPlaces" &&
                         of_pool->input(0) == Endpoint{relu, 0} &&
                         of_pool->input(1) == Endpoint{found->pool, 1} &&
                         UsesOf(*of_pool, 0).size() == 1;
    if (!follows) return false;
    found->gradients.emplace_back(of_pool, e.dst);
  }
  // The pooling, and two uses of each gradient: no others.
  return uses.size() == 1 + 2 * found->gradients.size() &&
         UsesOf(*found->pool, 1).size() == found->gradients.size();
}

}  // namespace

StatusOr<bool> ComputeReluAfterPooling(Graph* graph, const PassContext&) {
  std::vector<Replaced> replaced;
  PooledRelu p;
  for (Node* const node : graph->nodes()) {
    if (node->op() != "Relu" || IsRef(node->input(0).node->output_type(node->input(0).index)) ||
        !FindUses(node, &p)) {
      continue;
    }
    // Names stay with the values that others use.
    const Endpoint in = p.relu->input(0);
    const AttributeMap windows = p.pool->attrs();
    using Inputs = std::vector<Endpoint>;
    replaced.emplace_back(p.relu, "_MaxPoolWithPlaces", windows, Inputs{in});
    replaced.emplace_back(p.pool, "Relu", p.relu->attrs(), Inputs{{p.relu, 0}});
    for (const auto& [of_pool, of_relu] : p.gradients) {
      replaced.emplace_back(of_pool, "ReluGrad", of_relu->attrs(),
                            Inputs{of_pool->input(2), {p.pool, 0}});
      replaced.emplace_back(of_relu, "_MaxPoolGradOfPlaces", of_pool->attrs(),
                            Inputs{in, {p.relu, 1}, {of_pool, 0}});
    }
  }
  if (replaced.empty()) return false;
  TENON_RETURN_IF_ERROR(ReplaceNodes(graph, replaced));
  return true;
}

}  // namespace tenon
