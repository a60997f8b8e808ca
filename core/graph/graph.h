// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/op/op_registry.h"
#include "core/tensor/attribute.h"

namespace tenon {

class FunctionLibrary;
class Node;

/// Output `index` of `node`.
struct Endpoint {
  Node* node = nullptr;
  int index = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

/// The index that stands for a control dependency, which carries no value.
inline constexpr int kControlSlot = -1;

/// An edge as its source sees it: output `output` of the source feeds input `input` of `dst`; both
/// are kControlSlot for a control dependency.
struct OutEdge {
  Node* dst;
  int output;
  int input;
};

/// One operation in a Graph. Made, connected and changed through the Graph.
class Node {
 public:
  int id() const { return id_; }
  /// That of the graph that the node is in; see Graph::id.
  uint64_t graph_id() const { return graph_id_; }
  const std::string& name() const { return definition_->name; }
  const OpRegistration& registration() const { return *definition_->op; }
  const OpSchema& schema() const { return registration().schema; }
  /// The op's name.
  const std::string& op() const { return schema().name; }
  const AttributeMap& attrs() const { return definition_->attrs; }

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(output_types().size()); }
  /// The dtypes, references marked.
  const DTypeVector& input_types() const { return definition_->input_types; }
  const DTypeVector& output_types() const { return definition_->output_types; }
  DType output_type(int i) const { return output_types()[i]; }

  /// What feeds data input `i`; its node is null while the graph is being built.
  const Endpoint& input(int i) const { return inputs_[i]; }
  const std::vector<Endpoint>& inputs() const { return inputs_; }
  const std::vector<Node*>& control_inputs() const { return control_inputs_; }
  const std::vector<OutEdge>& out_edges() const { return out_edges_; }

  /// The shapes of the outputs as far as shape inference knows them.
  const PartialShape& output_shape(int i) const { return output_shapes_[i]; }

  /// What the user asked for: a device name, perhaps partial or empty.
  const std::string& requested_device() const { return requested_device_; }
  void set_requested_device(std::string device) { requested_device_ = std::move(device); }
  /// The full name of the device that placement chose; empty before. Valid until it is set again.
  const std::string& assigned_device() const { return *assigned_device_; }
  void set_assigned_device(std::string device) {
    assigned_device_ = std::make_shared<const std::string>(std::move(device));
  }
  /// The text may be that of many nodes. REQUIRES: not null.
  void set_assigned_device(std::shared_ptr<const std::string> device) {
    assigned_device_ = std::move(device);
  }

  /// Where in a program the node was built, in this process; line 0 of what was read or made by the
  /// runtime. Copies have it, a GraphDef has not.
  const std::source_location& place() const { return place_; }
  void set_place(const std::source_location& place) { place_ = place; }

  /// What it means to the flow of control: its op's, but for a constant Enter.
  FlowKind flow() const {
    const FlowKind kind = schema().flow;
    return kind == FlowKind::kEnter && attrs().GetOr<bool>("is_constant", false)
               ? FlowKind::kConstantEnter
               : kind;
  }
  bool is_enter() const { return schema().flow == FlowKind::kEnter; }
  bool is_exit() const { return schema().flow == FlowKind::kExit; }
  bool is_next_iteration() const { return schema().flow == FlowKind::kNextIteration; }
  bool is_transfer() const { return schema().flow == FlowKind::kTransfer; }
  bool is_arg() const { return schema().is_arg; }
  bool is_retval() const { return schema().is_retval; }
  bool is_constant() const { return schema().is_constant; }
  bool is_placeholder() const { return schema().is_placeholder; }
  bool is_variable() const { return schema().is_variable; }
  bool is_identity() const { return schema().is_identity; }
  bool is_stateful() const { return schema().is_stateful; }
  /// Whether its outputs follow from its inputs alone, whenever and wherever it runs.
  bool is_pure() const { return !schema().is_stateful && !schema().reads_outside; }

 private:
  friend class Graph;
  friend Node* FailedNode();
  Node();

  /// The part that does not change once the node is made: copies share it.
  struct Definition {
    const OpRegistration* op = nullptr;
    std::string name;
    AttributeMap attrs;
    DTypeVector input_types;
    DTypeVector output_types;
  };

  int id_ = -1;
  uint64_t graph_id_ = 0;
  std::shared_ptr<const Definition> definition_;
  std::string requested_device_;
  std::shared_ptr<const std::string> assigned_device_;  // not null
  std::source_location place_;
  std::vector<Endpoint> inputs_;
  std::vector<Node*> control_inputs_;
  std::vector<OutEdge> out_edges_;
  std::vector<PartialShape> output_shapes_;
};

/// What functions give for a node that could not be made: it has no name, inputs or outputs, is of
/// no graph, and stands for no value.
Node* FailedNode();

/// The part of a larger tensor that a variable holds; checkpoints have the whole under one name
/// (TensorFlow's SaveSliceInfo).
struct VariablePart {
  std::string name;                    // of the whole
  std::vector<int64_t> shape;          // of the whole
  std::vector<int64_t> begin, extent;  // the part, dimension by dimension
};

/// The nodes of a variable as C++ programs make it (see Variable).
struct VariableEntry {
  Node* ref;           // VariableV2, or VarHandleOp
  Node* value;         // what ops read
  Node* initializer;   // gives it its initial value
  bool trainable;      // whether optimizers change it
  bool local = false;  // of this process alone, such as the counts of a metric: not saved
  std::optional<VariablePart> part = {};

  bool is_resource() const { return !IsRef(ref->output_type(0)); }
};

/// What versions a GraphDef says it was made by.
struct GraphVersions {
  int producer = 1645;
  int min_consumer = 0;
};

/// A dataflow graph: nodes with unique names, joined by data and control edges. The only cycles
/// that Validate allows go through NextIteration. Keeps references into an OpRegistry, which must
/// outlive it. Not thread-safe while it changes; safe to read from several threads.
class Graph {
 public:
  explicit Graph(const OpRegistry& registry);
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  /// The same for no two graphs of the process, and not 0. A copy has one of its own.
  uint64_t id() const { return id_; }
  const OpRegistry& registry() const { return *registry_; }
  GraphVersions& versions() { return versions_; }
  const GraphVersions& versions() const { return versions_; }

  /// The functions that nodes may call. Copies of the graph, and its nodes, share them.
  const FunctionLibrary& functions() const { return *functions_; }
  void set_functions(std::shared_ptr<const FunctionLibrary> functions) {
    functions_ = std::move(functions);
  }
  const std::shared_ptr<const FunctionLibrary>& shared_functions() const { return functions_; }

  /// The first mistake made in building the graph (see building.h), which is then without use.
  const Status& error() const { return error_; }
  /// Keeps a mistake, unless there is one.
  void Fail(const Status& error) {
    if (error_.ok()) error_ = error;
  }
  /// The first mistake, which is forgotten: for who removes what was built.
  Status TakeError() { return std::exchange(error_, OkStatus()); }
  /// What the seeds of random ops are made of; see NextSeeds.
  struct Seeds {
    std::optional<int64_t> graph_seed;
    int64_t seedless_ops = 0;
  };
  Seeds& seeds() { return seeds_; }
  /// Whether some node entered a while loop.
  bool has_loops() const { return has_loops_; }
  /// What is known of the loops that nodes are in, by id; see LoopFrameOf. Forgotten when nodes go.
  flat_hash_map<int, std::string>& loop_frames() { return loop_frames_; }
  /// In the order they were made. Not part of a GraphDef, nor of copies.
  std::vector<VariableEntry>& variables() { return variables_; }
  const std::vector<VariableEntry>& variables() const { return variables_; }
  /// Tensors and nodes (as their output 0) that parts of a program leave for others, by the names
  /// of TensorFlow's collections: "regularization_losses", "update_ops", "losses", "global_step".
  /// In the order they were added. Not part of a GraphDef, nor of copies.
  std::vector<Endpoint>& Collection(std::string_view name) {
    return collections_[std::string(name)];
  }
  /// Gradients of single nodes in place of their ops', by the nodes' attribute `_gradient_op_type`.
  StringMap<GradientFn>& custom_gradients() { return custom_gradients_; }

  /// A node without inputs yet. Checks the op, which may be one of the functions, and its
  /// attributes; defaults are added.
  /// AlreadyExists "duplicate node name 'x'"; NotFound for an unknown op.
  StatusOr<Node*> AddNode(std::string_view name, std::string_view op, AttributeMap attrs);
  /// A node with its data inputs, whose shapes are inferred at once.
  StatusOr<Node*> AddNode(std::string_view name, std::string_view op, AttributeMap attrs,
                          const std::vector<Endpoint>& inputs);

  /// A node like `node` of another graph over the same registry: name, op, attributes, devices and
  /// shapes; no edges.
  StatusOr<Node*> CopyNode(const Node& node);

  /// Feeds input `index` of `dst`, replacing what fed it. InvalidArgument when the slot or the
  /// output does not exist, or the dtypes differ (a reference serves as a value, not the reverse).
  Status Connect(Endpoint src, Node* dst, int index);
  /// Makes `dst` wait for `src`. Does nothing when it does already.
  void AddControlEdge(Node* src, Node* dst);
  void RemoveControlEdge(Node* src, Node* dst);
  /// Makes all data consumers of `from` read `to`. The dtypes must be equal.
  Status ReplaceUses(Endpoint from, Endpoint to);
  /// Removes a node and its edges.
  void RemoveNode(Node* node);
  /// Removes several nodes at once, in time that is linear in the edges of their neighbours.
  void RemoveNodes(const std::vector<Node*>& nodes);
  /// Removes the nodes whose ids are at least `first_id`, which must not feed the others, and makes
  /// their ids free again: adding them is undone.
  void RemoveNodesFrom(int first_id);
  /// Makes room for `nodes` more nodes.
  void Reserve(int nodes);

  /// The node, or null.
  Node* Find(std::string_view name) const;
  /// `base`, or base_1, base_2, ... whichever is the first that no node has.
  std::string UniqueName(std::string_view base) const;

  /// Every node, in the order they were added. Ids index it when nothing was removed; removed
  /// places are skipped by nodes().
  std::vector<Node*> nodes() const;
  int num_nodes() const { return live_; }
  /// Ids are below this.
  int num_ids() const { return static_cast<int>(nodes_.size()); }
  Node* node(int id) const { return nodes_[id].get(); }

  /// Every node after what feeds it, except for edges out of NextIteration; InvalidArgument naming
  /// the nodes of a cycle that has no NextIteration. Only the nodes whose ids are at least
  /// `first_id`, which must not feed the others.
  StatusOr<std::vector<Node*>> TopologicalOrder(int first_id = 0) const;
  /// The first mistake made in building it, else: every input connected and no illegal cycle.
  Status Validate() const;

  /// Forgets of the shape of an output what `shape` leaves open: of a loop's value, whose shape
  /// changes.
  void RelaxShape(Endpoint output, const PartialShape& shape) {
    PartialShape& known = output.node->output_shapes_[output.index];
    known = known.RelaxedWith(shape);
  }
  /// Infers the output shapes of one node from those of its inputs.
  Status InferShapes(Node* node);
  /// Infers them for the whole graph, or its nodes from `first_id` on, in topological order; the
  /// errors of that. Inside loops shapes that come from NextIteration are unknown. Where shapes
  /// contradict each other the outputs are of unknown shape: the kernel fails, if it is run.
  Status InferShapes(int first_id = 0);
  /// Keeps why a node cannot run, in place of what was kept before: only a step that needs it
  /// fails. OK for a node that can.
  void SetNodeError(const Node& node, const Status& error);
  /// The error that SetNodeError was given, or InferShapes found in the node's attributes; or OK.
  Status NodeError(const Node& node) const {
    const auto found = node_errors_.find(node.id_);
    return found == node_errors_.end() ? OkStatus() : found->second;
  }

  /// A copy. Nodes keep their names, ids and order.
  Graph Clone() const;

 private:
  /// Takes nodes that go out of variables_ and collections_.
  void Forget(const std::function<bool(const Node*)>& goes);
  static Status CheckConnection(Endpoint src, const Node& dst, int index);
  void RemoveOutEdge(Node* src, const Node* dst, int output, int input);

  StatusOr<const OpRegistration*> LookupOp(std::string_view op) const;

  uint64_t id_;
  const OpRegistry* registry_;
  std::shared_ptr<const FunctionLibrary> functions_;
  GraphVersions versions_;
  Status error_;
  std::map<int, Status> node_errors_;  // by node id
  Seeds seeds_;
  std::vector<VariableEntry> variables_;
  StringMap<std::vector<Endpoint>> collections_;
  StringMap<GradientFn> custom_gradients_;
  bool has_loops_ = false;
  flat_hash_map<int, std::string> loop_frames_;
  std::vector<std::unique_ptr<Node>> nodes_;
  int live_ = 0;
  StringViewMap<Node*> by_name_;  // the names are those of the nodes
  mutable StringMap<int> next_suffix_;
};

/// A node name that users may give: [A-Za-z0-9.][A-Za-z0-9_.\\\-/>]*. Names that begin with '_' are
/// for nodes that the runtime makes.
bool IsLegalNodeName(std::string_view name);
/// The error for a name that is not; `what` has the name: "node", "scope".
Status IllegalNodeName(std::string_view name, std::string_view what);

/// "name:index", or "name" for output 0.
std::string ToString(const Endpoint& endpoint);

/// A tensor name "node" or "node:index" taken apart; InvalidArgument when it is neither.
struct TensorName {
  std::string node;
  int index = 0;
};
StatusOr<TensorName> ParseTensorName(std::string_view text);

/// "file.cc:12", without the folders.
std::string ToString(const std::source_location& place);

/// An error that AnnotateWithNode has annotated, with the place of that node before it: `place_of`
/// finds it by the node's name. Others, and those of nodes without a place, as they are.
Status AnnotateWithPlace(
    const Status& status,
    const std::function<std::source_location(std::string_view node)>& place_of);

/// `status` with "node 'name' (Op)[ on device]" before it, and the marker that TensorFlow's client
/// reads the failing node from after it.
Status AnnotateWithNode(const Status& status, std::string_view name, std::string_view op,
                        std::string_view device);

}  // namespace tenon
