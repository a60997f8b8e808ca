// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/partition.h"

#include "runtime/compile/control_flow_places.h"
#include "runtime/compile/control_loops.h"
#include "runtime/compile/reference_waits.h"

namespace tenon {
namespace {

class Partitioner {
 public:
  Partitioner(Graph graph, const PartitionOptions& options)
      : graph_(std::move(graph)), options_(options) {}

  StatusOr<std::map<std::string, Graph>> Run() {
    TENON_RETURN_IF_ERROR(PlaceControlFlow(&graph_));
    TENON_RETURN_IF_ERROR(ReadReferencesOnDevices());
    TENON_ASSIGN_OR_RETURN(triggers_, AddControlLoops(&graph_, options_.location));
    if (!triggers_.empty()) {
      TENON_ASSIGN_OR_RETURN(frames_, FindFrames(graph_));
    }
    const std::vector<Node*> nodes = graph_.nodes();
    locations_.resize(graph_.num_ids());
    bool divided = false;
    for (const Node* n : nodes) {
      locations_[n->id()] = options_.location(*n);
      divided |= locations_[n->id()] != locations_[nodes[0]->id()];
    }
    if (!divided && !nodes.empty()) {
      const std::string location(locations_[nodes[0]->id()]);
      parts_.emplace(location, std::move(graph_));
      return std::move(parts_);
    }
    TENON_RETURN_IF_ERROR(CopyNodes(nodes));
    for (const Node* n : nodes) TENON_RETURN_IF_ERROR(ConnectNode(*n));
    return std::move(parts_);
  }

 private:
  Status CopyNodes(const std::vector<Node*>& nodes) {
    copies_.assign(graph_.num_ids(), nullptr);
    for (const Node* n : nodes) {
      const std::string location(locations_[n->id()]);
      auto it = parts_.find(location);
      if (it == parts_.end()) {
        it = parts_.emplace(location, Graph(graph_.registry())).first;
        it->second.versions() = graph_.versions();
        it->second.set_functions(graph_.shared_functions());
      }
      TENON_ASSIGN_OR_RETURN(copies_[n->id()], it->second.CopyNode(*n));
    }
    return OkStatus();
  }

  /// A value that leaves a device with memory of its own is copied to the host, and sent, at once.
  /// So a reference there is read by a node of its own, which waits for all that its consumer waits
  /// for.
  Status ReadReferencesOnDevices() {
    const std::vector<Node*> nodes = graph_.nodes();
    flat_hash_set<const Node*> reads;
    for (Node* node : nodes) {
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Endpoint in = node->input(i);
        const DType type = in.node->output_type(in.index);
        const std::string& device = in.node->assigned_device();
        if (!IsRef(type) || IsRef(node->input_types()[i]) || device == node->assigned_device() ||
            device.find("/device:CPU:") != device.npos) {
          continue;
        }
        TENON_ASSIGN_OR_RETURN(
            Node * read,
            graph_.AddNode(graph_.UniqueName(StrCat(in.node->name(), "/read_for_", node->name())),
                           "Identity", {{"T", BaseType(type)}}, {in}));
        read->set_assigned_device(device);
        TENON_RETURN_IF_ERROR(graph_.Connect({read, 0}, node, i));
        reads.insert(read);
        WaitForOtherInputs(*node, reads, read, &graph_);
      }
    }
    return OkStatus();
  }

  Status ConnectNode(const Node& node) {
    const std::string here(locations_[node.id()]);
    Graph& part = parts_.at(here);
    Node* copy = copies_[node.id()];
    flat_hash_set<const Node*> references;  // that are received
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Endpoint& in = node.input(i);
      Endpoint from{copies_[in.node->id()], in.index};
      if (locations_[in.node->id()] != here) {
        if (IsRef(node.input_types()[i])) {
          return InvalidArgument("node '", node.name(), "' on ", here, " takes a reference to '",
                                 in.node->name(), "' on ", locations_[in.node->id()],
                                 "; references cannot cross devices");
        }
        TENON_ASSIGN_OR_RETURN(from.node, Transfer(in, node));
        from.index = 0;
        if (IsRef(in.node->output_type(in.index))) references.insert(from.node);
      }
      TENON_RETURN_IF_ERROR(part.Connect(from, copy, i));
    }
    for (Node* c : node.control_inputs()) {
      Node* from = copies_[c->id()];
      if (locations_[c->id()] != here) {
        TENON_ASSIGN_OR_RETURN(from, Transfer({c, kControlSlot}, node));
      }
      part.AddControlEdge(from, copy);
    }
    for (const Endpoint& in : copy->inputs()) {
      if (references.contains(in.node)) WaitForOtherInputs(*copy, references, in.node, &part);
    }
    return OkStatus();
  }

  /// The node at the consumer's location that stands for `src` there: made once per tensor and
  /// receiving device, and for each consumer of a reference.
  StatusOr<Node*> Transfer(const Endpoint& src, const Node& consumer) {
    const std::string& to = consumer.assigned_device();
    const bool control = src.index == kControlSlot;
    if (!control && IsRef(src.node->output_type(src.index))) return NewTransfer(src, consumer);
    Node*& received = received_[{{src.node, src.index}, to}];
    if (received == nullptr) {
      TENON_ASSIGN_OR_RETURN(received, NewTransfer(src, consumer));
    }
    return received;
  }

  StatusOr<Node*> NewTransfer(const Endpoint& src, const Node& consumer) {
    const std::string& to = consumer.assigned_device();
    const bool control = src.index == kControlSlot;
    Graph& from_part = parts_.at(std::string(locations_[src.node->id()]));
    Graph& to_part = parts_.at(std::string(locations_[consumer.id()]));
    const std::string& from = src.node->assigned_device();
    const std::string name = src.node->name();
    const DType type = control ? DType::kFloat : BaseType(src.node->output_type(src.index));
    const AttributeMap keys = {
        {"tensor_name", StrCat(options_.tensor_prefix, "edge_", next_edge_++, "_", name)},
        {"send_device", from},
        {"send_device_incarnation", static_cast<int64_t>(options_.incarnation(from))},
        {"recv_device", to},
        {"client_terminated", false}};

    Endpoint sent{copies_[src.node->id()], src.index};
    if (control) {
      TENON_ASSIGN_OR_RETURN(
          sent.node, from_part.AddNode(Name(from_part, name), "Const",
                                       {{"dtype", type}, {"value", Tensor(type, Shape{0})}}));
      sent.node->set_assigned_device(from);
      from_part.AddControlEdge(copies_[src.node->id()], sent.node);
      sent.index = 0;
    }
    AttributeMap send_attrs = keys;
    send_attrs.Set("T", type);
    TENON_ASSIGN_OR_RETURN(Node * send,
                           from_part.AddNode(Name(from_part, name), "_Send", send_attrs));
    send->set_assigned_device(from);
    TENON_RETURN_IF_ERROR(from_part.Connect(sent, send, 0));

    AttributeMap recv_attrs = keys;
    recv_attrs.Set("tensor_type", type);
    TENON_ASSIGN_OR_RETURN(Node * received,
                           to_part.AddNode(Name(to_part, name), "_Recv", recv_attrs));
    received->set_assigned_device(to);
    if (Node* trigger = TriggerFor(consumer)) to_part.AddControlEdge(trigger, received);
    if (control) {
      TENON_ASSIGN_OR_RETURN(Node * identity, to_part.AddNode(Name(to_part, name), "Identity",
                                                              {{"T", type}}, {{received, 0}}));
      identity->set_assigned_device(to);
      received = identity;
    }
    return received;
  }

  /// In a loop, the node whose execution says that an iteration has begun at the consumer's
  /// location; null outside loops.
  Node* TriggerFor(const Node& consumer) const {
    if (triggers_.empty()) return nullptr;
    const int frame = frames_.frame_of_node[consumer.id()];
    if (frame == 0) return nullptr;
    const auto found =
        triggers_.find({std::string(locations_[consumer.id()]), frames_.frames[frame].name});
    return found == triggers_.end() ? nullptr : copies_[found->second->id()];
  }

  std::string Name(const Graph& part, const std::string& source) {
    std::string name;
    do {
      name = StrCat(source, "_S", next_name_++);
    } while (part.Find(name) != nullptr);
    return name;
  }

  Graph graph_;
  const PartitionOptions& options_;
  std::map<std::string, Graph> parts_;
  std::vector<Node*> copies_;
  std::vector<std::string_view> locations_;  // by id
  FrameInfo frames_;
  flat_hash_map<std::pair<std::string, std::string>, Node*> triggers_;
  flat_hash_map<std::pair<std::pair<Node*, int>, std::string>, Node*> received_;
  int next_edge_ = 0;
  int next_name_ = 1;
};

}  // namespace

StatusOr<std::map<std::string, Graph>> PartitionGraph(Graph graph,
                                                      const PartitionOptions& options) {
  return Partitioner(std::move(graph), options).Run();
}

}  // namespace tenon
