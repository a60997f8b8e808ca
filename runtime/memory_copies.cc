// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_copies.h"

#include <algorithm>
#include <numeric>

#include "core/hash_map.h"
#include "core/host_args.h"

namespace tenon {
namespace {

/// Where a node has an input or output.
enum class Place : uint8_t {
  kHost,
  kDevice,
  kEither,  ///< Of an input: the node does not look at it.
  kMoved,   ///< Where the others of the same group are; see MemoryGroups.
};

struct NodePlaces {
  std::vector<Place> inputs, outputs;
};

Place PlaceOf(bool on_host) { return on_host ? Place::kHost : Place::kDevice; }

bool TakesReference(const Node& node) {
  return std::any_of(node.input_types().begin(), node.input_types().end(), IsRef);
}

StatusOr<NodePlaces> PlacesOf(const Node& node, DeviceKind device) {
  NodePlaces places;
  KernelMemory memory = node.registration().MemoryOn(device, node.attrs());
  if (node.op() == "_Arg" || node.op() == "_Retval") memory = kHostMemory;
  if (memory == kHostMemory) {
    places.inputs.assign(node.num_inputs(), Place::kHost);
    places.outputs.assign(node.num_outputs(), Place::kHost);
    return places;
  }
  TENON_ASSIGN_OR_RETURN(const auto inputs, HostArgs(node.schema().inputs, node.attrs()));
  TENON_ASSIGN_OR_RETURN(const auto outputs, HostArgs(node.schema().outputs, node.attrs()));
  for (const bool on_host : inputs) places.inputs.push_back(PlaceOf(on_host));
  for (const bool on_host : outputs) places.outputs.push_back(PlaceOf(on_host));
  // What a reference refers to, which such a consumer reads, is in the device's memory.
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsRef(node.output_type(i)))
      places.outputs[i] = PlaceOf(!IsPlain(BaseType(node.output_type(i))));
  }
  // What keeps tensors, or refers to what does, has them in the device's memory.
  if (memory != kAnyMemory || node.is_stateful() || TakesReference(node)) return places;
  const bool moves = std::count(places.outputs.begin(), places.outputs.end(), Place::kDevice) > 0;
  for (auto* side : {&places.inputs, &places.outputs}) {
    std::replace(side->begin(), side->end(), Place::kDevice,
                 moves ? Place::kMoved : Place::kEither);
  }
  return places;
}

/// Nodes that only move tensors (Identity, Switch, Reshape and so on) do so in either memory. Those
/// that hand each other values are a group, whose place is that of what comes in: an integer that
/// counts the turns of a loop never leaves the host, and what all consumers want on the device goes
/// there before it enters the loop.
class MemoryGroups {
 public:
  MemoryGroups(const Graph& graph, const std::vector<NodePlaces>& places)
      : places_(places), parent_(graph.num_ids()), seen_(graph.num_ids()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    ForEachEdge(graph, [&](const Endpoint& from, const Node& to, int i) {
      if (OutputOf(from) == Place::kMoved && InputOf(to, i) == Place::kMoved) {
        parent_[Root(from.node->id())] = Root(to.id());
      }
    });
    ForEachEdge(graph, [&](const Endpoint& from, const Node& to, int i) {
      const Place output = OutputOf(from), input = InputOf(to, i);
      if (output == Place::kMoved) {
        Seen& seen = seen_[Root(from.node->id())];
        seen.wanted_on_host |= input == Place::kHost;
        seen.wanted_on_device |= input == Place::kDevice;
      } else if (input == Place::kMoved) {
        Seen& seen = seen_[Root(to.id())];
        seen.comes_from_host |= output == Place::kHost;
        seen.comes_from_device |= output == Place::kDevice && from.node->op() != "Const";
      }
    });
  }

  Place PlaceOfGroup(const Node& node) {
    const Seen& seen = seen_[Root(node.id())];
    if (seen.comes_from_device) return Place::kDevice;
    return PlaceOf(seen.wanted_on_host || (seen.comes_from_host && !seen.wanted_on_device));
  }

 private:
  /// What goes into and out of a group.
  struct Seen {
    bool comes_from_host = false, comes_from_device = false;
    bool wanted_on_host = false, wanted_on_device = false;
  };

  template <typename F>
  static void ForEachEdge(const Graph& graph, const F& f) {
    for (const Node* n : graph.nodes()) {
      for (int i = 0; i < n->num_inputs(); ++i) f(n->input(i), *n, i);
    }
  }
  Place OutputOf(const Endpoint& e) const { return places_[e.node->id()].outputs[e.index]; }
  Place InputOf(const Node& node, int i) const { return places_[node.id()].inputs[i]; }
  int Root(int id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }

  const std::vector<NodePlaces>& places_;
  std::vector<int> parent_;
  std::vector<Seen> seen_;
};

/// Makes the copies of one graph.
class Copier {
 public:
  Copier(Graph* graph, DeviceKind device)
      : graph_(*graph), device_(device), places_(graph->num_ids()) {}

  Status Run() {
    const std::vector<Node*> nodes = graph_.nodes();
    for (const Node* n : nodes) {
      TENON_ASSIGN_OR_RETURN(places_[n->id()], PlacesOf(*n, device_));
    }
    MemoryGroups groups(graph_, places_);
    for (const Node* n : nodes) {
      NodePlaces& places = places_[n->id()];
      for (auto* side : {&places.inputs, &places.outputs}) {
        std::replace(side->begin(), side->end(), Place::kMoved, groups.PlaceOfGroup(*n));
      }
    }
    std::vector<Node*> unused;
    for (Node* n : nodes) {
      for (int i = 0; i < n->num_inputs(); ++i) {
        const Endpoint from = n->input(i);
        const Place wanted = places_[n->id()].inputs[i];
        if (IsRef(n->input_types()[i]) || wanted == Place::kEither ||
            places_[from.node->id()].outputs[from.index] == wanted) {
          continue;
        }
        TENON_ASSIGN_OR_RETURN(Node * copy, CopyOf(from, wanted == Place::kHost));
        TENON_RETURN_IF_ERROR(graph_.Connect({copy, 0}, n, i));
        if (copy->op() == "HostConst" && from.node->out_edges().empty())
          unused.push_back(from.node);
      }
    }
    graph_.RemoveNodes(unused);
    return OkStatus();
  }

 private:
  StatusOr<Node*> CopyOf(const Endpoint& from, bool to_host) {
    Node*& copy = copies_[{from.node, from.index}];
    if (copy != nullptr) return copy;
    const std::string name =
        graph_.UniqueName(StrCat(from.node->name(), to_host ? "/on_host" : "/on_device"));
    if (to_host && from.node->op() == "Const") {
      TENON_ASSIGN_OR_RETURN(copy, graph_.AddNode(name, "HostConst", from.node->attrs(), {}));
      for (Node* before : from.node->control_inputs()) graph_.AddControlEdge(before, copy);
    } else {
      const DType type = BaseType(from.node->output_type(from.index));
      TENON_ASSIGN_OR_RETURN(copy, graph_.AddNode(name, to_host ? "_CopyToHost" : "_CopyToDevice",
                                                  {{"T", type}}, {from}));
    }
    copy->set_assigned_device(from.node->assigned_device());
    return copy;
  }

  Graph& graph_;
  const DeviceKind device_;
  std::vector<NodePlaces> places_;  // by node id
  flat_hash_map<std::pair<Node*, int>, Node*> copies_;
};

}  // namespace

Status AddMemoryCopies(Graph* part, Device& device) {
  if (device.allocator().IsHostMemory()) return OkStatus();
  return Copier(part, device.kind()).Run();
}

}  // namespace tenon
