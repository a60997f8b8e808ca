// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/passes/pass.h"

namespace tenon {
namespace {

/// Larger windows have more pixels than a place can number.
constexpr int64_t kMaxPixels = 256;

bool HasSmallWindows(const Node& pool) {
  int64_t pixels = 1;
  for (const int64_t size : pool.attrs().GetOr<std::vector<int64_t>>("ksize", {})) {
    if (size < 1 || size > kMaxPixels) return false;
    pixels *= size;
    if (pixels > kMaxPixels) return false;
  }
  return true;
}

/// Whether `grad` is the gradient of `pool`: of its input, its output, and the same windows.
bool IsGradientOf(const Node& grad, Node& pool) {
  if (grad.op() != "MaxPoolGrad" || !(grad.input(0) == pool.input(0)) ||
      !(grad.input(1) == Endpoint{&pool, 0})) {
    return false;
  }
  constexpr std::string_view kWindows[] = {"ksize", "strides", "padding", "explicit_paddings",
                                           "data_format"};
  return std::all_of(std::begin(kWindows), std::end(kWindows), [&](std::string_view name) {
    const Attribute *const a = grad.attrs().Find(name), *const b = pool.attrs().Find(name);
    return a != nullptr && b != nullptr && a->Equals(*b);
  });
}

/// Puts a node of kind `op` in the place of `node`, whose name, attributes and edges it gets.
StatusOr<Node*> Replace(Graph* graph, Node* node, std::string_view op,
                        const std::vector<Endpoint>& inputs) {
  const std::string name = node->name(), requested = node->requested_device(),
                    assigned = node->assigned_device();
  const AttributeMap attrs = node->attrs();
  const std::vector<Node*> before = node->control_inputs();
  const std::vector<OutEdge> after = node->out_edges();
  graph->RemoveNode(node);
  TENON_ASSIGN_OR_RETURN(Node * made, graph->AddNode(name, op, attrs, inputs));
  made->set_requested_device(requested);
  made->set_assigned_device(assigned);
  for (Node* const b : before) graph->AddControlEdge(b, made);
  for (const OutEdge& e : after) {
    if (e.output == kControlSlot) {
      graph->AddControlEdge(made, e.dst);
    } else {
      TENON_RETURN_IF_ERROR(graph->Connect({made, e.output}, e.dst, e.input));
    }
  }
  return made;
}

}  // namespace

StatusOr<bool> KeepPlacesOfMaxima(Graph* graph, const PassContext& context) {
  const OpRegistration* const with_places = graph->registry().Find("_MaxPoolWithPlaces");
  const OpRegistration* const of_places = graph->registry().Find("_MaxPoolGradOfPlaces");
  if (with_places == nullptr || of_places == nullptr) return false;
  bool changed = false;
  for (Node* const pool : graph->nodes()) {
    if (pool->op() != "MaxPool") continue;
    // What a reference stands for may be another value when the gradient is computed.
    const Endpoint& in = pool->input(0);
    if (IsRef(in.node->output_type(in.index)) || !HasSmallWindows(*pool)) continue;
    std::vector<Node*> gradients;
    for (const OutEdge& e : pool->out_edges()) {
      if (e.input == 1 && IsGradientOf(*e.dst, *pool)) gradients.push_back(e.dst);
    }
    const DeviceKind kind = context.device->kind();
    if (gradients.empty() || with_places->FindKernel(kind, pool->attrs()) == nullptr ||
        of_places->FindKernel(kind, pool->attrs()) == nullptr) {
      continue;
    }
    TENON_ASSIGN_OR_RETURN(Node* const kept,
                           Replace(graph, pool, "_MaxPoolWithPlaces", {pool->input(0)}));
    for (Node* const g : gradients) {
      TENON_RETURN_IF_ERROR(
          Replace(graph, g, "_MaxPoolGradOfPlaces", {g->input(0), {kept, 1}, g->input(2)})
              .status());
    }
    changed = true;
  }
  return changed;
}

}  // namespace tenon
