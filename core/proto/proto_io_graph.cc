// SPDX-License-Identifier: Apache-2.0
#include "core/proto/proto_io_graph.h"

#include <algorithm>
#include <charconv>

#include "core/device/device_name.h"
#include "core/proto/proto_io_attribute.h"
#include "core/proto/proto_io_function.h"
#include "core/proto/proto_io_tensor.h"

namespace tenon {
namespace {

/// A node of thirty bytes may declare a million outputs, each of which takes memory; this bounds
/// what a whole message may declare.
constexpr int64_t kMaxOutputs = 1 << 22;

/// Puts the node before the message of an error.
Status InNode(const Status& status, const NodeDef& def) {
  return Annotate(status, StrCat("node '", def.name(), "' (", def.op(), ")"));
}

struct InputName {
  std::string_view node;
  int index = 0;  // kControlSlot for "^node"
};

/// Takes "node", "node:3" or "^node" apart.
StatusOr<InputName> ParseInput(std::string_view text) {
  InputName name;
  if (text.starts_with('^')) {
    name.node = text.substr(1);
    name.index = kControlSlot;
    return name;
  }
  const size_t colon = text.rfind(':');
  name.node = text.substr(0, colon);
  if (colon == std::string_view::npos) return name;
  const std::string_view digits = text.substr(colon + 1);
  const char* const end = digits.data() + digits.size();
  const auto [last, error] = std::from_chars(digits.data(), end, name.index);
  if (error != std::errc() || last != end || name.index < 0) {
    return InvalidArgument("input '", text, "' is not of the form node, node:output or ^node");
  }
  return name;
}

class Importer {
 public:
  Importer(const GraphDef& proto, const GraphImportOptions& options, Graph* graph)
      : proto_(proto),
        options_(options),
        graph_(*graph),
        first_id_(graph->num_ids()),
        extends_(graph->num_nodes() > 0) {}

  Status Run() {
    const std::shared_ptr<const FunctionLibrary> functions = graph_.shared_functions();
    Status status = RunUnguarded();
    if (!status.ok()) {
      graph_.RemoveNodesFrom(first_id_);
      graph_.set_functions(functions);
    }
    return status;
  }

 private:
  Status RunUnguarded() {
    TENON_RETURN_IF_ERROR(CheckVersions());
    TENON_RETURN_IF_ERROR(AddFunctions());
    nodes_.reserve(proto_.node_size());
    for (const NodeDef& def : proto_.node()) TENON_RETURN_IF_ERROR(AddNode(def));
    for (int i = 0; i < proto_.node_size(); ++i) {
      TENON_RETURN_IF_ERROR(ConnectInputs(proto_.node(i), nodes_[i]));
    }
    // A node that was there before has no new inputs, so a cycle can only be among the new ones.
    return options_.infer_shapes ? graph_.InferShapes(first_id_)
                                 : graph_.TopologicalOrder(first_id_).status();
  }

  Status AddFunctions() {
    if (proto_.library().function_size() == 0) return OkStatus();
    auto functions = std::make_shared<FunctionLibrary>(graph_.functions());
    TENON_RETURN_IF_ERROR(
        AddFunctionsFromProto(proto_.library(), graph_.registry(), functions.get()));
    graph_.set_functions(std::move(functions));
    return OkStatus();
  }

  Status CheckVersions() const {
    const VersionDef& versions = proto_.versions();
    if (versions.producer() < 0) {
      return InvalidArgument("GraphDef producer version ", versions.producer(), " is negative");
    }
    if (versions.min_consumer() > kGraphDefVersion) {
      return InvalidArgument("GraphDef min consumer version ", versions.min_consumer(),
                             " above current version ", kGraphDefVersion,
                             " for Tenon.  Please upgrade Tenon.");
    }
    const auto& bad = versions.bad_consumers();
    if (std::find(bad.begin(), bad.end(), kGraphDefVersion) != bad.end()) {
      return InvalidArgument("GraphDef disallows consumer version ", kGraphDefVersion,
                             ", which is the version of Tenon.  Please upgrade Tenon.");
    }
    return OkStatus();
  }

  Status CheckName(const NodeDef& def) const {
    const std::string& name = def.name();
    const bool internal = options_.allow_internal_names && name.size() > 1 && name[0] == '_';
    // What follows the underscore of an internal name may again begin with one.
    const std::string_view body =
        internal
            ? std::string_view(name).substr(std::min(name.find_first_not_of('_'), name.size() - 1))
            : std::string_view(name);
    if (!IsLegalNodeName(body)) return InvalidArgument("Illegal op name '", name, "'");
    const Node* found = graph_.Find(name);
    if (found == nullptr) return OkStatus();
    if (extends_ && found->id() < first_id_) {
      return InvalidArgument("GraphDef argument to Extend includes node '", name,
                             "', which was created by a previous call to Create or Extend in this "
                             "session.");
    }
    return InvalidArgument("Node '", name, "' is not unique");
  }

  StatusOr<AttributeMap> ReadAttributes(const NodeDef& def) {
    const FunctionDefinition* function = graph_.functions().Find(def.op());
    const OpRegistration* op =
        function != nullptr ? &function->signature : graph_.registry().Find(def.op());
    AttributeMap attrs;
    for (const auto& [name, value] : def.attr()) {
      // Newer writers may have kinds of values that we cannot read, in attributes we do not know.
      if (value.value_case() == AttrValue::VALUE_NOT_SET &&
          (op == nullptr || op->schema.FindAttr(name) == nullptr)) {
        continue;
      }
      auto attribute = AttributeFromProto(value, &fill_budget_);
      if (!attribute.ok()) return Annotate(attribute.status(), StrCat("attr '", name, "'"));
      if (const DType* type = attribute->get_if<DType>(); type != nullptr && IsRef(*type)) {
        return InvalidArgument("attr '", name, "' must not be the reference type ",
                               ToString(*type));
      }
      attrs.Set(name, *std::move(attribute));
    }
    return attrs;
  }

  Status AddNode(const NodeDef& def) {
    TENON_RETURN_IF_ERROR(CheckName(def));
    const OpRegistration* const op = graph_.registry().Find(def.op());
    if (op != nullptr && op->schema.is_runtime_only() && !options_.allow_internal_names) {
      return InNode(InvalidArgument("the op is for the runtime's own use"), def);
    }
    auto attrs = ReadAttributes(def);
    if (!attrs.ok()) return InNode(attrs.status(), def);
    if (!def.device().empty() && def.device() != last_device_) {
      if (auto device = DeviceName::Parse(def.device()); !device.ok()) {
        return InNode(device.status(), def);
      }
      last_device_ = def.device();
    }
    auto added = graph_.AddNode(def.name(), def.op(), *std::move(attrs));
    if (!added.ok()) {
      // An unknown op is the one error that Graph does not say the node of.
      return added.status().code() == StatusCode::kNotFound ? InNode(added.status(), def)
                                                            : added.status();
    }
    Node* node = *added;
    node->set_requested_device(def.device());
    // Checked before anything else is made: a few bytes may have declared a million inputs.
    const auto is_data = [](const std::string& in) { return !in.starts_with('^'); };
    const auto inputs = std::count_if(def.input().begin(), def.input().end(), is_data);
    if (inputs != node->num_inputs()) {
      return InNode(InvalidArgument("found ", inputs, " inputs, wanted ", node->num_inputs()), def);
    }
    outputs_ += node->num_outputs();
    if (outputs_ > kMaxOutputs) {
      return InNode(InvalidArgument("the graph has more than ", kMaxOutputs, " outputs"), def);
    }
    nodes_.push_back(node);
    return OkStatus();
  }

  Status ConnectInputs(const NodeDef& def, Node* node) {
    int slot = 0;
    bool control_seen = false;
    for (const std::string& text : def.input()) {
      auto input = ParseInput(text);
      if (!input.ok()) return InNode(input.status(), def);
      Node* source = graph_.Find(input->node);
      if (source == nullptr) {
        return InvalidArgument("Node '", def.name(), "': Unknown input node '", text, "'");
      }
      if (input->index == kControlSlot) {
        control_seen = true;
        graph_.AddControlEdge(source, node);
        continue;
      }
      if (control_seen) {
        return InNode(InvalidArgument("data input '", text, "' comes after a control input"), def);
      }
      if (input->index >= source->num_outputs()) {
        return InNode(
            InvalidArgument("Connecting to invalid output ", input->index, " of source node ",
                            source->name(), " which has ", source->num_outputs(),
                            " outputs. Try using "
                            "tf.compat.v1.experimental.output_all_intermediates(True)."),
            def);
      }
      // Its error names both nodes.
      TENON_RETURN_IF_ERROR(graph_.Connect({source, input->index}, node, slot++));
    }
    return OkStatus();
  }

  const GraphDef& proto_;
  const GraphImportOptions& options_;
  Graph& graph_;
  const int first_id_;
  const bool extends_;
  std::vector<Node*> nodes_;
  std::string last_device_;
  int64_t fill_budget_ = kMaxFillBytes;
  int64_t outputs_ = 0;
};

Status NodeToProto(const Node& node, const GraphExportOptions& options, NodeDef* out) {
  out->set_name(node.name());
  out->set_op(node.op());
  out->set_device(node.assigned_device().empty() ? node.requested_device()
                                                 : node.assigned_device());
  for (const Endpoint& in : node.inputs()) {
    if (in.node == nullptr) return Internal("node '", node.name(), "' has an unconnected input");
    out->add_input(ToString(in));
  }
  for (const Node* control : node.control_inputs()) out->add_input(StrCat("^", control->name()));
  for (const auto& [name, value] : node.attrs()) {
    if (options.strip_default_attrs) {
      const AttrSchema* schema = node.schema().FindAttr(name);
      if (schema != nullptr && schema->default_value && schema->default_value->Equals(value)) {
        continue;
      }
    }
    Status status = AttributeToProto(value, &(*out->mutable_attr())[name]);
    if (!status.ok()) {
      return Annotate(status,
                      StrCat("node '", node.name(), "' (", node.op(), "): attr '", name, "'"));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<Graph> GraphFromProto(const GraphDef& proto, const OpRegistry& registry,
                               const GraphImportOptions& options) {
  Graph graph(registry);
  graph.Reserve(proto.node_size());
  TENON_RETURN_IF_ERROR(Importer(proto, options, &graph).Run());
  graph.versions().producer = proto.versions().producer();
  graph.versions().min_consumer = proto.versions().min_consumer();
  return graph;
}

Status ExtendGraphFromProto(const GraphDef& proto, Graph* graph,
                            const GraphImportOptions& options) {
  return Importer(proto, options, graph).Run();
}

Status GraphToProto(const Graph& graph, GraphDef* out, const GraphExportOptions& options) {
  TENON_RETURN_IF_ERROR(graph.error());
  out->Clear();
  out->mutable_versions()->set_producer(graph.versions().producer);
  out->mutable_versions()->set_min_consumer(graph.versions().min_consumer);
  if (!graph.functions().empty()) {
    TENON_RETURN_IF_ERROR(FunctionsToProto(graph.functions(), out->mutable_library()));
  }
  for (const Node* node : graph.nodes()) {
    TENON_RETURN_IF_ERROR(NodeToProto(*node, options, out->add_node()));
  }
  return OkStatus();
}

}  // namespace tenon
