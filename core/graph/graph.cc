// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <algorithm>
#include <atomic>
#include <charconv>

#include "core/op/function.h"

namespace tenon {
namespace {

/// The most outputs of a node: an attribute of a few bytes says how many there are, and each takes
/// some hundred.
constexpr size_t kMaxOutputs = 1 << 16;

Status InNode(const Status& status, std::string_view name, std::string_view op) {
  return Annotate(status, StrCat("node '", name, "' (", op, ")"));
}

/// The error of a step with advice on what to do about it, where there is one, before its last
/// line.
Status WithAdvice(const Status& status) {
  const std::string_view message = Message(status);
  const size_t mistake = message.find("Attempting to use uninitialized value ");
  if (mistake == std::string_view::npos) return status;
  const size_t end = std::min(message.find('\n', mistake), message.size());
  return WithMessage(status, StrCat(message.substr(0, end),
                                    "; first run GlobalVariablesInitializer(), made after the last "
                                    "variable, or restore a checkpoint",
                                    message.substr(end)));
}

}  // namespace

Node::Node() {
  static const auto* const nowhere =
      new std::shared_ptr<const std::string>(std::make_shared<const std::string>());
  assigned_device_ = *nowhere;
}

Graph::Graph(const OpRegistry& registry) : registry_(&registry) {
  static std::atomic<uint64_t> graphs{0};
  id_ = ++graphs;
  static const auto* const none =
      new std::shared_ptr<const FunctionLibrary>(std::make_shared<FunctionLibrary>());
  functions_ = *none;
}

StatusOr<const OpRegistration*> Graph::LookupOp(std::string_view op) const {
  if (const FunctionDefinition* function = functions_->Find(op)) return &function->signature;
  return registry_->Lookup(op);
}

StatusOr<Node*> Graph::AddNode(std::string_view name, std::string_view op, AttributeMap attrs) {
  if (by_name_.contains(name)) return AlreadyExists("duplicate node name '", name, "'");
  TENON_ASSIGN_OR_RETURN(const OpRegistration* registration, LookupOp(op));
  auto definition = std::make_shared<Node::Definition>();
  definition->op = registration;
  definition->name = name;
  definition->attrs = std::move(attrs);
  const auto in_node = [&](const Status& s) { return InNode(s, name, op); };
  if (Status s = ApplySchema(registration->schema, &definition->attrs); !s.ok()) return in_node(s);
  auto input_types = ArgTypes(registration->schema.inputs, definition->attrs);
  if (!input_types.ok()) return in_node(input_types.status());
  auto output_types = ArgTypes(registration->schema.outputs, definition->attrs);
  if (!output_types.ok()) return in_node(output_types.status());
  if (output_types->size() > kMaxOutputs) {
    return in_node(InvalidArgument("a node has at most ", kMaxOutputs, " outputs, found ",
                                   output_types->size()));
  }
  definition->input_types = *std::move(input_types);
  definition->output_types = *std::move(output_types);
  std::unique_ptr<Node> node(new Node);
  node->graph_id_ = id_;
  node->inputs_.resize(definition->input_types.size());
  node->output_shapes_.resize(definition->output_types.size());
  node->definition_ = std::move(definition);
  node->id_ = num_ids();
  has_loops_ |= node->is_enter();
  Node* added = node.get();
  nodes_.push_back(std::move(node));  // first, so that whoever undoes an addition finds it
  ++live_;
  by_name_.emplace(added->name(), added);
  return added;
}

StatusOr<Node*> Graph::AddNode(std::string_view name, std::string_view op, AttributeMap attrs,
                               const std::vector<Endpoint>& inputs) {
  TENON_ASSIGN_OR_RETURN(Node * node, AddNode(name, op, std::move(attrs)));
  Status status;
  if (static_cast<int>(inputs.size()) != node->num_inputs()) {
    status = InvalidArgument("found ", inputs.size(), " inputs, wanted ", node->num_inputs());
  }
  for (int i = 0; i < node->num_inputs() && status.ok(); ++i) {
    status = Connect(inputs[i], node, i);
  }
  if (status.ok()) status = InferShapes(node);
  if (!status.ok()) {
    status = InNode(status, name, op);
    RemoveNode(node);
    return status;
  }
  return node;
}

StatusOr<Node*> Graph::CopyNode(const Node& node) {
  if (by_name_.contains(node.name())) {
    return AlreadyExists("duplicate node name '", node.name(), "'");
  }
  std::unique_ptr<Node> copy(new Node(node));
  copy->inputs_.assign(node.inputs_.size(), Endpoint());
  copy->control_inputs_.clear();
  copy->out_edges_.clear();
  copy->id_ = num_ids();
  copy->graph_id_ = id_;
  Node* added = copy.get();
  nodes_.push_back(std::move(copy));
  ++live_;
  by_name_.emplace(added->name(), added);
  return added;
}

Status Graph::CheckConnection(Endpoint src, const Node& dst, int index) {
  if (index < 0 || index >= dst.num_inputs()) {
    return InvalidArgument("node '", dst.name(), "' has no input ", index, "; it has ",
                           dst.num_inputs());
  }
  if (src.index < 0 || src.index >= src.node->num_outputs()) {
    return InvalidArgument("node '", src.node->name(), "' (", src.node->op(), ") has no output ",
                           src.index, "; it has ", src.node->num_outputs());
  }
  const DType found = src.node->output_types()[src.index];
  const DType wanted = dst.input_types()[index];
  if (found != wanted && BaseType(found) != wanted) {
    return InvalidArgument("Input ", index, " of node ", dst.name(), " was passed ", found,
                           " from ", src.node->name(), ":", src.index,
                           " incompatible with expected ", wanted, " of ", dst.op(),
                           IsRef(wanted) ? "; of a Variable w the reference is w.ref()" : "");
  }
  return OkStatus();
}

Status Graph::Connect(Endpoint src, Node* dst, int index) {
  TENON_RETURN_IF_ERROR(CheckConnection(src, *dst, index));
  Endpoint& slot = dst->inputs_[index];
  if (slot.node != nullptr) RemoveOutEdge(slot.node, dst, slot.index, index);
  slot = src;
  src.node->out_edges_.push_back({dst, src.index, index});
  return OkStatus();
}

void Graph::AddControlEdge(Node* src, Node* dst) {
  // Searched from the side with fewer edges: either may have very many.
  auto& controls = dst->control_inputs_;
  const auto& edges = src->out_edges_;
  const bool present = controls.size() <= edges.size()
                           ? std::find(controls.begin(), controls.end(), src) != controls.end()
                           : std::any_of(edges.begin(), edges.end(), [&](const OutEdge& e) {
                               return e.dst == dst && e.input == kControlSlot;
                             });
  if (present) return;
  controls.push_back(src);
  src->out_edges_.push_back({dst, kControlSlot, kControlSlot});
}

void Graph::RemoveControlEdge(Node* src, Node* dst) {
  auto& controls = dst->control_inputs_;
  const auto it = std::find(controls.begin(), controls.end(), src);
  if (it == controls.end()) return;
  controls.erase(it);
  RemoveOutEdge(src, dst, kControlSlot, kControlSlot);
}

void Graph::RemoveOutEdge(Node* src, const Node* dst, int output, int input) {
  auto& edges = src->out_edges_;
  const auto it = std::find_if(edges.begin(), edges.end(), [&](const OutEdge& e) {
    return e.dst == dst && e.output == output && e.input == input;
  });
  TENON_CHECK(it != edges.end());
  edges.erase(it);
}

Status Graph::ReplaceUses(Endpoint from, Endpoint to) {
  if (from.index == kControlSlot) return OkStatus();
  std::vector<OutEdge>& edges = from.node->out_edges_;
  std::vector<OutEdge> moved;
  for (const OutEdge& e : edges) {
    if (e.output != from.index) continue;
    TENON_RETURN_IF_ERROR(CheckConnection(to, *e.dst, e.input));
    moved.push_back(e);
  }
  // In one sweep: taking the edges out one by one would move all others each time.
  std::erase_if(edges, [&](const OutEdge& e) { return e.output == from.index; });
  for (const OutEdge& e : moved) {
    e.dst->inputs_[e.input] = to;
    to.node->out_edges_.push_back({e.dst, to.index, e.input});
  }
  return OkStatus();
}

void Graph::Forget(const std::function<bool(const Node*)>& goes) {
  std::erase_if(variables_, [&](const VariableEntry& v) {
    return goes(v.ref) || goes(v.value) || goes(v.initializer);
  });
  for (auto& [name, members] : collections_) {
    std::erase_if(members, [&](const Endpoint& e) { return goes(e.node); });
  }
}

void Graph::RemoveNode(Node* node) {
  loop_frames_.clear();
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Endpoint& in = node->inputs_[i];
    if (in.node != nullptr) RemoveOutEdge(in.node, node, in.index, i);
  }
  for (Node* c : node->control_inputs_) RemoveOutEdge(c, node, kControlSlot, kControlSlot);
  for (const OutEdge& e : node->out_edges_) {
    if (e.input == kControlSlot) {
      auto& controls = e.dst->control_inputs_;
      controls.erase(std::find(controls.begin(), controls.end(), node));
    } else {
      e.dst->inputs_[e.input] = Endpoint();
    }
  }
  Forget([node](const Node* n) { return n == node; });
  by_name_.erase(node->name());
  nodes_[node->id_].reset();
  --live_;
}

void Graph::RemoveNodes(const std::vector<Node*>& nodes) {
  loop_frames_.clear();
  const flat_hash_set<const Node*> gone(nodes.begin(), nodes.end());
  flat_hash_set<Node*> sources, waiting;
  for (const Node* n : nodes) {
    for (const Endpoint& in : n->inputs_) {
      if (in.node != nullptr && !gone.contains(in.node)) sources.insert(in.node);
    }
    for (Node* c : n->control_inputs_) {
      if (!gone.contains(c)) sources.insert(c);
    }
    for (const OutEdge& e : n->out_edges_) {
      if (gone.contains(e.dst)) continue;
      if (e.input == kControlSlot) {
        waiting.insert(e.dst);
      } else {
        e.dst->inputs_[e.input] = Endpoint();
      }
    }
  }
  for (Node* source : sources) {
    std::erase_if(source->out_edges_, [&](const OutEdge& e) { return gone.contains(e.dst); });
  }
  for (Node* dst : waiting) {
    std::erase_if(dst->control_inputs_, [&](const Node* c) { return gone.contains(c); });
  }
  Forget([&](const Node* n) { return gone.contains(n); });
  for (const Node* n : nodes) {
    by_name_.erase(n->name());
    nodes_[n->id_].reset();
    --live_;
  }
}

void Graph::RemoveNodesFrom(int first_id) {
  loop_frames_.clear();
  node_errors_.erase(node_errors_.lower_bound(first_id), node_errors_.end());
  // The edges into the nodes that stay go in one sweep a source: removing each on its own would
  // search the list of a node with many consumers once for every one of them.
  flat_hash_set<Node*> sources;
  const auto note = [&](Node* source) {
    if (source != nullptr && source->id_ < first_id) sources.insert(source);
  };
  for (int id = first_id; id < num_ids(); ++id) {
    const Node* n = nodes_[id].get();
    if (n == nullptr) continue;
    for (const Endpoint& in : n->inputs_) note(in.node);
    for (Node* c : n->control_inputs_) note(c);
    by_name_.erase(n->name());
    --live_;
  }
  for (Node* source : sources) {
    std::erase_if(source->out_edges_, [&](const OutEdge& e) { return e.dst->id_ >= first_id; });
  }
  Forget([first_id](const Node* n) { return n->id_ >= first_id; });
  nodes_.resize(first_id);
}

void Graph::SetNodeError(const Node& node, const Status& error) {
  if (error.ok()) {
    node_errors_.erase(node.id_);
  } else {
    node_errors_.insert_or_assign(node.id_, error);
  }
}

void Graph::Reserve(int nodes) {
  nodes_.reserve(nodes_.size() + nodes);
  by_name_.reserve(by_name_.size() + nodes);
}

Node* Graph::Find(std::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

std::string Graph::UniqueName(std::string_view base) const {
  if (!by_name_.contains(base)) return std::string(base);
  int& suffix = next_suffix_[std::string(base)];
  std::string name;
  do {
    name = StrCat(base, "_", ++suffix);
  } while (by_name_.contains(name));
  return name;
}

std::vector<Node*> Graph::nodes() const {
  std::vector<Node*> nodes;
  nodes.reserve(live_);
  for (const auto& n : nodes_) {
    if (n != nullptr) nodes.push_back(n.get());
  }
  return nodes;
}

StatusOr<std::vector<Node*>> Graph::TopologicalOrder(int first_id) const {
  std::vector<int> pending(nodes_.size(), 0);
  std::vector<Node*> order;
  const auto waits_for = [first_id](const Node* source) {
    return source != nullptr && source->id_ >= first_id && !source->is_next_iteration();
  };
  int wanted = 0;
  for (int id = first_id; id < num_ids(); ++id) {
    Node* n = nodes_[id].get();
    if (n == nullptr) continue;
    ++wanted;
    int count = 0;
    for (const Endpoint& in : n->inputs_) count += waits_for(in.node);
    for (const Node* c : n->control_inputs_) count += waits_for(c);
    pending[id] = count;
    if (count == 0) order.push_back(n);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i]->is_next_iteration()) continue;
    for (const OutEdge& e : order[i]->out_edges_) {
      if (--pending[e.dst->id_] == 0) order.push_back(e.dst);
    }
  }
  if (static_cast<int>(order.size()) == wanted) return order;
  std::string names;
  int shown = 0;
  for (const auto& n : nodes_) {
    if (n == nullptr || pending[n->id_] <= 0) continue;
    if (++shown > 5) break;
    StrAppend(&names, names.empty() ? "" : ", ", "'", n->name(), "'");
  }
  return InvalidArgument("the graph has a cycle that does not go through NextIteration; it holds ",
                         "or feeds ", names, shown > 5 ? ", ..." : "");
}

Node* FailedNode() {
  static Node* const failed = [] {
    auto* const definition = new Node::Definition;
    definition->op = new OpRegistration;
    auto* const node = new Node;
    node->definition_.reset(definition);
    return node;
  }();
  return failed;
}

Status Graph::Validate() const {
  TENON_RETURN_IF_ERROR(error_);
  for (const auto& n : nodes_) {
    if (n == nullptr) continue;
    for (int i = 0; i < n->num_inputs(); ++i) {
      if (n->inputs_[i].node == nullptr) {
        return InvalidArgument("input ", i, " of node '", n->name(), "' (", n->op(),
                               ") is not connected");
      }
    }
  }
  return TopologicalOrder().status();
}

Graph Graph::Clone() const {
  Graph copy(*registry_);
  copy.functions_ = functions_;
  copy.versions_ = versions_;
  copy.error_ = error_;
  copy.node_errors_ = node_errors_;
  copy.nodes_.resize(nodes_.size());
  copy.by_name_.reserve(live_);
  copy.live_ = live_;
  copy.has_loops_ = has_loops_;
  for (const auto& n : nodes_) {
    if (n == nullptr) continue;
    auto* const node = new Node(*n);
    copy.nodes_[n->id_].reset(node);
    node->graph_id_ = copy.id_;
    copy.by_name_.emplace(node->name(), node);
  }
  for (const auto& n : copy.nodes_) {
    if (n == nullptr) continue;
    for (Endpoint& in : n->inputs_) {
      if (in.node != nullptr) in.node = copy.nodes_[in.node->id_].get();
    }
    for (Node*& c : n->control_inputs_) c = copy.nodes_[c->id_].get();
    for (OutEdge& e : n->out_edges_) e.dst = copy.nodes_[e.dst->id_].get();
  }
  return copy;
}

bool IsLegalNodeName(std::string_view name) {
  const auto alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || !(alnum(name[0]) || name[0] == '.')) return false;
  return std::all_of(name.begin() + 1, name.end(), [&](char c) {
    return alnum(c) || c == '_' || c == '.' || c == '-' || c == '/' || c == '>' || c == '\\';
  });
}

Status IllegalNodeName(std::string_view name, std::string_view what) {
  return InvalidArgument("'", name, "' is no name of a ", what,
                         ": letters, digits and any of _ . - / "
                         "> \\ are, after a letter, a digit or '.'");
}

std::string ToString(const Endpoint& endpoint) {
  return endpoint.index == 0 ? endpoint.node->name()
                             : StrCat(endpoint.node->name(), ":", endpoint.index);
}

StatusOr<TensorName> ParseTensorName(std::string_view text) {
  TensorName name;
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const std::string_view number = text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), name.index);
    if (error != std::errc() || end != number.data() + number.size() || name.index < 0) {
      return InvalidArgument("'", text, "' is not a tensor name; wanted 'node' or 'node:output'");
    }
  }
  name.node = text.substr(0, colon);
  if (name.node.empty() || name.node.find(':') != std::string::npos || name.node[0] == '^') {
    return InvalidArgument("'", text, "' is not a tensor name; wanted 'node' or 'node:output'");
  }
  return name;
}

std::string ToString(const std::source_location& place) {
  const std::string_view file = place.file_name();
  return StrCat(file.substr(file.rfind('/') + 1), ":", place.line());
}

Status AnnotateWithPlace(
    const Status& status,
    const std::function<std::source_location(std::string_view node)>& place_of) {
  constexpr std::string_view kMarker = "[[{{node ";
  const std::string_view message = Message(status);
  const size_t marker = status.ok() ? std::string_view::npos : message.find(kMarker);
  if (marker == std::string_view::npos) return status;
  const std::string_view name = message.substr(marker + kMarker.size());
  const std::source_location place = place_of(name.substr(0, name.find("}}")));
  return place.line() == 0 ? status : Annotate(WithAdvice(status), ToString(place));
}

Status AnnotateWithNode(const Status& status, std::string_view name, std::string_view op,
                        std::string_view device) {
  if (status.ok() || Message(status).find("[[{{node ") != std::string_view::npos) return status;
  const std::string where = device.empty() ? "" : StrCat(" on ", device);
  return AppendToMessage(Annotate(status, StrCat("node '", name, "' (", op, ")", where)),
                         StrCat("\n\t [[{{node ", name, "}}]]"));
}

}  // namespace tenon
