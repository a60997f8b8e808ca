// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/memory_copies.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/base/hash_map.h"
#include "core/gradient/reference_reads.h"
#include "core/graph/graph.h"
#include "core/op/host_args.h"
#include "runtime/compile/reference_waits.h"

namespace tenon {
namespace {

/// Where a node has an input or output.
enum class MemoryPlace : uint8_t {
  kHost,
  kDevice,
  kEither,  ///< Of an input: the node does not look at it.
  kMoved,   ///< Where the others of the same group are; see MemoryGroups.
};

struct NodePlaces {
  std::vector<MemoryPlace> inputs, outputs;
};

MemoryPlace PlaceOf(bool on_host) { return on_host ? MemoryPlace::kHost : MemoryPlace::kDevice; }

bool TakesReference(const Node& node) {
  return std::any_of(node.input_types().begin(), node.input_types().end(), IsRef);
}

StatusOr<NodePlaces> PlacesOf(const Node& node, DeviceKind device) {
  NodePlaces places;
  KernelMemory memory = node.registration().MemoryOn(device, node.attrs());
  if (node.is_arg() || node.is_retval()) memory = kHostMemory;
  if (memory == kHostMemory) {
    places.inputs.assign(node.num_inputs(), MemoryPlace::kHost);
    places.outputs.assign(node.num_outputs(), MemoryPlace::kHost);
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
  const bool moves =
      std::count(places.outputs.begin(), places.outputs.end(), MemoryPlace::kDevice) > 0;
  for (auto* side : {&places.inputs, &places.outputs}) {
    std::replace(side->begin(), side->end(), MemoryPlace::kDevice,
                 moves ? MemoryPlace::kMoved : MemoryPlace::kEither);
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
      if (OutputOf(from) == MemoryPlace::kMoved && InputOf(to, i) == MemoryPlace::kMoved) {
        parent_[Root(from.node->id())] = Root(to.id());
      }
    });
    ForEachEdge(graph, [&](const Endpoint& from, const Node& to, int i) {
      const MemoryPlace output = OutputOf(from), input = InputOf(to, i);
      if (output == MemoryPlace::kMoved) {
        Seen& seen = seen_[Root(from.node->id())];
        seen.wanted_on_host |= input == MemoryPlace::kHost;
        seen.wanted_on_device |= input == MemoryPlace::kDevice;
      } else if (input == MemoryPlace::kMoved) {
        Seen& seen = seen_[Root(to.id())];
        seen.comes_from_host |= output == MemoryPlace::kHost;
        seen.comes_from_device |= output == MemoryPlace::kDevice && !from.node->is_constant();
      }
    });
  }

  MemoryPlace PlaceOfCapture(const Node& node) {
    const Seen& seen = seen_[Root(node.id())];
    if (seen.comes_from_device) return MemoryPlace::kDevice;
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
  MemoryPlace OutputOf(const Endpoint& e) const { return places_[e.node->id()].outputs[e.index]; }
  MemoryPlace InputOf(const Node& node, int i) const { return places_[node.id()].inputs[i]; }
  int Root(int id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }

  const std::vector<NodePlaces>& places_;
  std::vector<int> parent_;
  std::vector<Seen> seen_;
};

/// Makes the copies of one part: FindPlaces, then UseDeviceMemory for both ends of what goes
/// straight to another device, then AddCopies.
class Copier {
 public:
  explicit Copier(const DevicePart& part)
      : graph_(*part.graph), device_(*part.device), places_(graph_.num_ids()) {}

  Status FindPlaces() {
    nodes_ = graph_.nodes();
    for (const Node* n : nodes_) {
      TENON_ASSIGN_OR_RETURN(places_[n->id()], PlacesOf(*n, device_.kind()));
    }
    MemoryGroups groups(graph_, places_);
    for (const Node* n : nodes_) {
      NodePlaces& places = places_[n->id()];
      for (auto* side : {&places.inputs, &places.outputs}) {
        std::replace(side->begin(), side->end(), MemoryPlace::kMoved, groups.PlaceOfCapture(*n));
      }
    }
    return OkStatus();
  }

  Device& device() const { return device_; }
  const std::vector<Node*>& nodes() const { return nodes_; }

  /// Whether what `send` sends is in the device's memory.
  bool SendsFromDevice(const Node& send) const {
    const Endpoint& from = send.input(0);
    return places_[from.node->id()].outputs[from.index] == MemoryPlace::kDevice;
  }
  /// Whether somebody wants what `recv` receives in the device's memory.
  bool WantsOnDevice(const Node& recv) const {
    const auto& edges = recv.out_edges();
    return std::any_of(edges.begin(), edges.end(), [&](const OutEdge& e) {
      return e.input != kControlSlot &&
             places_[e.dst->id()].inputs[e.input] == MemoryPlace::kDevice;
    });
  }
  /// Puts the op `op` with the attributes of `node` in its place, with its argument in the device's
  /// memory.
  Status UseDeviceMemory(Node* node, const std::string& op) {
    TENON_ASSIGN_OR_RETURN(Node * other, graph_.AddNode(graph_.UniqueName(node->name()), op,
                                                        node->attrs(), node->inputs()));
    other->set_assigned_device(node->assigned_device());
    for (Node* before : node->control_inputs()) graph_.AddControlEdge(before, other);
    const std::vector<OutEdge> edges = node->out_edges();
    for (const OutEdge& e : edges) {
      if (e.input == kControlSlot) graph_.AddControlEdge(other, e.dst);
    }
    if (node->num_outputs() > 0) TENON_RETURN_IF_ERROR(graph_.ReplaceUses({node, 0}, {other, 0}));
    places_.resize(graph_.num_ids());
    places_[other->id()].inputs.assign(other->num_inputs(), MemoryPlace::kDevice);
    places_[other->id()].outputs.assign(other->num_outputs(), MemoryPlace::kDevice);
    std::replace(nodes_.begin(), nodes_.end(), node, other);
    graph_.RemoveNode(node);
    return OkStatus();
  }

  Status AddCopies() {
    std::vector<Node*> unused;
    for (Node* n : nodes_) {
      for (int i = 0; i < n->num_inputs(); ++i) {
        const MemoryPlace wanted = places_[n->id()].inputs[i];
        if (IsRef(n->input_types()[i]) || wanted == MemoryPlace::kEither) continue;
        const Endpoint from = n->input(i);
        if (places_[from.node->id()].outputs[from.index] == wanted) continue;
        const bool is_reference = IsRef(from.node->output_type(from.index));
        TENON_ASSIGN_OR_RETURN(Node * copy, is_reference
                                                ? NewCopyOf(from, wanted == MemoryPlace::kHost)
                                                : CopyOf(from, wanted == MemoryPlace::kHost));
        TENON_RETURN_IF_ERROR(graph_.Connect({copy, 0}, n, i));
        if (is_reference) WaitForOtherInputs(*n, reference_copies_, copy, &graph_);
        if (IsFetch(*n) && ReferenceRead(from) != nullptr) WaitForUpdates(copy);
        if (from.node->is_constant() && from.node->out_edges().empty()) unused.push_back(from.node);
      }
    }
    graph_.RemoveNodes(unused);
    return OkStatus();
  }

 private:
  static bool IsFetch(const Node& node) {
    return node.is_retval() ||
           (node.is_transfer() && node.attrs().GetOr("client_terminated", false));
  }

  /// A fetch shows the updates of the step: here, those that are sure to run and wait for no other
  /// task.
  void WaitForUpdates(Node* copy) {
    if (!updates_) FindUpdates();
    for (Node* update : *updates_) graph_.AddControlEdge(update, copy);
  }
  void FindUpdates() {
    std::vector<bool> unsure(graph_.num_ids(), false);
    std::vector<const Node*> stack;
    for (const Node* n : nodes_) {
      const FlowKind kind = n->flow();
      if (kind != FlowKind::kPlain && n->num_outputs() > 0) stack.push_back(n);
    }
    while (!stack.empty()) {
      const Node* const node = stack.back();
      stack.pop_back();
      for (const OutEdge& e : node->out_edges()) {
        if (unsure[e.dst->id()]) continue;
        unsure[e.dst->id()] = true;
        stack.push_back(e.dst);
      }
    }
    updates_.emplace();
    for (Node* n : nodes_) {
      if (TakesReference(*n) && !unsure[n->id()]) updates_->push_back(n);
    }
  }

  StatusOr<Node*> CopyOf(const Endpoint& from, bool to_host) {
    Node*& copy = copies_[{from.node, from.index}];
    if (copy == nullptr) {
      TENON_ASSIGN_OR_RETURN(copy, NewCopyOf(from, to_host));
    }
    return copy;
  }

  StatusOr<Node*> NewCopyOf(const Endpoint& from, bool to_host) {
    Node* copy = nullptr;
    const std::string name =
        graph_.UniqueName(StrCat(from.node->name(), to_host ? "/on_host" : "/on_device"));
    if (to_host && from.node->is_constant()) {
      TENON_ASSIGN_OR_RETURN(copy, graph_.AddNode(name, "HostConst", from.node->attrs(), {}));
      for (Node* before : from.node->control_inputs()) graph_.AddControlEdge(before, copy);
    } else {
      const DType type = BaseType(from.node->output_type(from.index));
      TENON_ASSIGN_OR_RETURN(copy, graph_.AddNode(name, to_host ? "_CopyToHost" : "_CopyToDevice",
                                                  {{"T", type}}, {from}));
    }
    copy->set_assigned_device(from.node->assigned_device());
    if (IsRef(from.node->output_type(from.index))) reference_copies_.insert(copy);
    return copy;
  }

  Graph& graph_;
  Device& device_;
  std::vector<NodePlaces> places_;  // by node id
  std::vector<Node*> nodes_;        // without the copies
  flat_hash_map<std::pair<Node*, int>, Node*> copies_;
  flat_hash_set<const Node*> reference_copies_;
  std::optional<std::vector<Node*>> updates_;
};

/// Sends from memory to memory what is made in that of one device and wanted in that of another.
Status SendBetweenDevices(std::vector<Copier>& parts) {
  struct End {
    Node* node;
    Copier* part;
  };
  StringMap<End> sends;
  const auto text = [](const Node& n, std::string_view attr) {
    return n.attrs().GetOr(attr, std::string());
  };
  const auto key = [&](const Node& n) {
    return StrCat(text(n, "send_device"), ";", text(n, "recv_device"), ";", text(n, "tensor_name"));
  };
  for (Copier& part : parts) {
    for (Node* n : part.nodes()) {
      if (n->is_transfer() && n->num_inputs() > 0) sends.emplace(key(*n), End{n, &part});
    }
  }
  for (Copier& part : parts) {
    const std::vector<Node*> nodes = part.nodes();
    for (Node* recv : nodes) {
      if (!recv->is_transfer() || recv->num_inputs() > 0) continue;
      const auto found = sends.find(key(*recv));
      if (found == sends.end()) continue;
      const auto [send, sender] = found->second;
      // What the session feeds or fetches has the same device at both ends, and stays on the host.
      if (sender == &part || text(*send, "recv_device") != part.device().name() ||
          sender->device().kind() != part.device().kind() || !sender->SendsFromDevice(*send) ||
          !part.WantsOnDevice(*recv)) {
        continue;
      }
      sends.erase(found);
      TENON_RETURN_IF_ERROR(sender->UseDeviceMemory(send, "_SendToPeer"));
      TENON_RETURN_IF_ERROR(part.UseDeviceMemory(recv, "_RecvFromPeer"));
    }
  }
  return OkStatus();
}

}  // namespace

Status AddMemoryCopies(absl::Span<const DevicePart> parts) {
  std::vector<Copier> copiers;
  for (const DevicePart& part : parts) {
    if (!part.device->allocator().IsHostMemory()) copiers.emplace_back(part);
  }
  for (Copier& c : copiers) TENON_RETURN_IF_ERROR(c.FindPlaces());
  TENON_RETURN_IF_ERROR(SendBetweenDevices(copiers));
  for (Copier& c : copiers) TENON_RETURN_IF_ERROR(c.AddCopies());
  return OkStatus();
}

}  // namespace tenon
