// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/hash_map.h"
#include "runtime/passes/pass.h"

namespace tenon {
namespace {

/// Larger windows have more pixels than a place can number.
constexpr int64_t kMaxPixels = 256;

/// Whether windows lie in height and width alone, and have few pixels.
bool HasSmallWindows(const Node& pool) {
  const auto ksize = pool.attrs().GetOr<std::vector<int64_t>>("ksize", {});
  const size_t channels = pool.attrs().GetOr<std::string>("data_format", "NHWC").find('C');
  if (channels >= ksize.size() || ksize[channels] != 1) return false;
  int64_t pixels = 1;
  for (const int64_t size : ksize) {
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

/// A node that another takes the place of, with its name, attributes and edges.
struct Replaced {
  Replaced(Node* node, std::string_view by, std::vector<Endpoint> in)
      : old(node),
        op(by),
        name(node->name()),
        requested_device(node->requested_device()),
        assigned_device(node->assigned_device()),
        attrs(node->attrs()),
        inputs(std::move(in)),
        control_inputs(node->control_inputs()),
        out_edges(node->out_edges()) {}

  Node* old;  // gone when the new nodes are made: only a key then
  std::string_view op;
  std::string name, requested_device, assigned_device;
  AttributeMap attrs;
  std::vector<Endpoint> inputs;  // of the new node, told by old ones
  std::vector<Node*> control_inputs;
  std::vector<OutEdge> out_edges;
};

/// All at once, since removing nodes one by one takes time that is quadratic in their neighbours.
Status Replace(Graph* graph, const std::vector<Replaced>& all) {
  std::vector<Node*> old;
  for (const Replaced& r : all) old.push_back(r.old);
  graph->RemoveNodes(old);
  flat_hash_map<const Node*, Node*> made;
  for (const Replaced& r : all) {
    TENON_ASSIGN_OR_RETURN(Node* const node, graph->AddNode(r.name, r.op, r.attrs));
    node->set_requested_device(r.requested_device);
    node->set_assigned_device(r.assigned_device);
    made.emplace(r.old, node);
  }
  const auto now = [&](Node* node) {
    const auto found = made.find(node);
    return found == made.end() ? node : found->second;
  };
  for (const Replaced& r : all) {
    Node* const node = made.at(r.old);
    for (size_t i = 0; i < r.inputs.size(); ++i) {
      const Endpoint& in = r.inputs[i];
      TENON_RETURN_IF_ERROR(graph->Connect({now(in.node), in.index}, node, static_cast<int>(i)));
    }
    for (Node* const before : r.control_inputs) graph->AddControlEdge(now(before), node);
    for (const OutEdge& e : r.out_edges) {
      if (made.contains(e.dst)) continue;  // has its inputs of itself
      if (e.output == kControlSlot) {
        graph->AddControlEdge(node, e.dst);
      } else {
        TENON_RETURN_IF_ERROR(graph->Connect({node, e.output}, e.dst, e.input));
      }
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<bool> KeepPlacesOfMaxima(Graph* graph, const PassContext& context) {
  const OpRegistration* const with_places = graph->registry().Find("_MaxPoolWithPlaces");
  const OpRegistration* const of_places = graph->registry().Find("_MaxPoolGradOfPlaces");
  if (with_places == nullptr || of_places == nullptr) return false;
  const DeviceKind kind = context.device->kind();
  std::vector<Replaced> replaced;
  for (Node* const pool : graph->nodes()) {
    if (pool->op() != "MaxPool") continue;
    // What a reference stands for may be another value when the gradient is computed.
    const Endpoint& in = pool->input(0);
    if (IsRef(in.node->output_type(in.index)) || !HasSmallWindows(*pool) ||
        with_places->FindKernel(kind, pool->attrs()) == nullptr ||
        of_places->FindKernel(kind, pool->attrs()) == nullptr) {
      continue;
    }
    const size_t gradients_begin = replaced.size();
    for (const OutEdge& e : pool->out_edges()) {
      if (e.input != 1 || !IsGradientOf(*e.dst, *pool)) continue;
      replaced.emplace_back(e.dst, "_MaxPoolGradOfPlaces",
                            std::vector<Endpoint>{in, {pool, 1}, e.dst->input(2)});
    }
    if (replaced.size() == gradients_begin) continue;
    replaced.emplace_back(pool, "_MaxPoolWithPlaces", std::vector<Endpoint>{in});
  }
  if (replaced.empty()) return false;
  TENON_RETURN_IF_ERROR(Replace(graph, replaced));
  return true;
}

}  // namespace tenon
