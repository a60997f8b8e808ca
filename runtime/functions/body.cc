// SPDX-License-Identifier: Apache-2.0
#include "runtime/functions/body.h"

#include <charconv>

#include "core/base/hash_map.h"
#include "core/device/device_name.h"
#include "runtime/functions/effects.h"

namespace tenon {
namespace {

/// What may be called: deeper, the names alone would fill the memory.
constexpr int kMaxDepth = 64;

/// How many prefixes are tried for the names of a body's nodes.
constexpr int kMaxPrefixes = 100;

/// "node:output:2" taken apart; the parts that are missing are empty and 0.
struct BodyValue {
  std::string_view node, output;
  int64_t index = 0;
};

StatusOr<BodyValue> ParseValue(std::string_view text) {
  BodyValue value;
  const size_t first = text.find(':');
  value.node = text.substr(0, first);
  if (first == std::string_view::npos) return value;
  std::string_view rest = text.substr(first + 1);
  const size_t second = rest.find(':');
  std::string_view number = second == std::string_view::npos ? rest : rest.substr(second + 1);
  if (second != std::string_view::npos) value.output = rest.substr(0, second);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), value.index);
  if (error == std::errc() && end == number.data() + number.size() && value.index >= 0) {
    return value;
  }
  return InvalidArgument("'", text,
                         "' is not of the form argument, argument:index or "
                         "node:output:index");
}

/// The body of one function as it is put into a graph.
class BodyImporter {
 public:
  BodyImporter(CallBuilder& builder, const FunctionDefinition& function, AttributeMap attrs,
               const std::vector<Endpoint>& arguments, Node* start)
      : builder_(builder),
        graph_(builder.graph()),
        function_(function),
        attrs_(std::move(attrs)),
        arguments_(arguments),
        start_(start) {}

  StatusOr<CallBuilder::Body> Run(std::string prefix) {
    TENON_ASSIGN_OR_RETURN(prefix_, FreePrefix(prefix));
    TENON_RETURN_IF_ERROR(TakeArguments());
    for (const FunctionNode& node : function_.nodes) names_.insert(node.name);
    for (const FunctionNode& node : function_.nodes) {
      if (const Status s = AddNode(node); !s.ok()) return InNode(node, s);
    }
    for (const FunctionNode& node : function_.nodes) {
      if (const Status s = Connect(node); !s.ok()) return InNode(node, s);
    }
    return Results();
  }

  const std::vector<Node*>& added() const { return added_; }

 private:
  static Status InNode(const FunctionNode& node, const Status& status) {
    return Annotate(status, StrCat("node '", node.name, "' (", node.op, ")"));
  }

  /// `prefix`, or one like it, so that no node of the body has a name that is taken.
  StatusOr<std::string> FreePrefix(const std::string& prefix) const {
    const auto taken = [&](const std::string& p) {
      for (const FunctionNode& node : function_.nodes) {
        if (graph_.Find(StrCat(p, node.name)) != nullptr) return true;
      }
      return false;
    };
    std::string free = prefix + "/";
    for (int i = 1; taken(free); ++i) {
      // Each try looks for all nodes of the body.
      if (i == kMaxPrefixes) {
        return InvalidArgument("names of its nodes are taken under '", prefix, "/', and up to '",
                               free, "'");
      }
      free = StrCat(prefix, "_", i, "/");
    }
    return free;
  }

  Status TakeArguments() {
    size_t at = 0;
    for (const ArgSchema& arg : function_.signature.schema.inputs) {
      TENON_ASSIGN_OR_RETURN(const int64_t length, ArgLength(arg, attrs_));
      argument_places_.emplace(arg.name, std::pair(at, length));
      at += length;
    }
    TENON_ASSIGN_OR_RETURN(const DTypeVector types,
                           ArgTypes(function_.signature.schema.inputs, attrs_));
    if (types.size() != arguments_.size()) {
      return InvalidArgument("it takes ", types.size(), " arguments, found ", arguments_.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      const DType found = BaseType(arguments_[i].node->output_type(arguments_[i].index));
      if (found == BaseType(types[i])) continue;
      return InvalidArgument("argument ", i, " is ", types[i], ", found ", found);
    }
    return OkStatus();
  }

  Status AddNode(const FunctionNode& body) {
    AttributeMap attrs = body.attrs;
    for (const auto& [name, parameter] : body.parameters) {
      const Attribute* value = attrs_.Find(parameter);
      if (value == nullptr) return InvalidArgument("the call has no attr '", parameter, "'");
      attrs.Set(name, *value);
    }
    // Two bodies of one function would run their loops in one frame, and share what is colocated.
    if (const auto frame = attrs.Get<std::string>("frame_name"); frame.ok()) {
      attrs.Set("frame_name", StrCat(prefix_, *frame));
    }
    if (auto classes = attrs.Get<std::vector<std::string>>("_class"); classes.ok()) {
      for (std::string& c : *classes) {
        constexpr std::string_view kAt = "loc:@";
        if (!c.starts_with(kAt)) continue;
        const std::string_view node = std::string_view(c).substr(kAt.size());
        if (names_.contains(node)) c = StrCat(kAt, prefix_, node);
      }
      attrs.Set("_class", *std::move(classes));
    }
    TENON_ASSIGN_OR_RETURN(Node * node, builder_.graph().AddNode(StrCat(prefix_, body.name),
                                                                 body.op, std::move(attrs)));
    TENON_ASSIGN_OR_RETURN(std::string device, builder_.DeviceOf(body.device));
    node->set_requested_device(std::move(device));
    nodes_.emplace(body.name, node);
    added_.push_back(node);
    return OkStatus();
  }

  Status Connect(const FunctionNode& body) {
    Node* const node = nodes_.find(body.name)->second;
    int slot = 0;
    for (const std::string& input : body.inputs) {
      if (input.starts_with('^')) {
        TENON_ASSIGN_OR_RETURN(Node * before, FindNode(std::string_view(input).substr(1)));
        graph_.AddControlEdge(before, node);
        continue;
      }
      TENON_ASSIGN_OR_RETURN(const Endpoint value, Find(input));
      TENON_RETURN_IF_ERROR(graph_.Connect(value, node, slot++));
    }
    if (slot != node->num_inputs()) {
      return InvalidArgument("found ", slot, " inputs, wanted ", node->num_inputs());
    }
    if (body.inputs.empty() && start_ != nullptr) graph_.AddControlEdge(start_, node);
    return OkStatus();
  }

  /// The node of the body, or what gives the argument.
  StatusOr<Node*> FindNode(std::string_view name) const {
    if (const auto node = nodes_.find(name); node != nodes_.end()) return node->second;
    TENON_ASSIGN_OR_RETURN(const Endpoint argument, Find(name));
    return argument.node;
  }

  StatusOr<Endpoint> Find(std::string_view text) const {
    TENON_ASSIGN_OR_RETURN(const BodyValue value, ParseValue(text));
    if (const auto found = argument_places_.find(value.node); found != argument_places_.end()) {
      const auto [first, length] = found->second;
      if (value.index < length) return arguments_[first + value.index];
      return InvalidArgument("'", text, "' is not there: argument '", value.node, "' has ", length,
                             " tensors");
    }
    const auto found = nodes_.find(value.node);
    if (found == nodes_.end()) return InvalidArgument("'", text, "' is not there");
    int64_t first = 0;
    for (const ArgSchema& output : found->second->schema().outputs) {
      TENON_ASSIGN_OR_RETURN(const int64_t length, ArgLength(output, found->second->attrs()));
      if (value.output.empty() || output.name == value.output) {
        const int64_t index = first + value.index;
        if (value.index >= length) break;
        return Endpoint{found->second, static_cast<int>(index)};
      }
      first += length;
    }
    return InvalidArgument("'", text, "' is not there: node '", value.node, "' (",
                           found->second->op(), ") has no such output");
  }

  StatusOr<CallBuilder::Body> Results() const {
    CallBuilder::Body body;
    for (const ArgSchema& result : function_.signature.schema.outputs) {
      const auto found = function_.results.find(result.name);
      if (found == function_.results.end()) {
        return InvalidArgument("nothing gives its result '", result.name, "'");
      }
      TENON_ASSIGN_OR_RETURN(const int64_t length, ArgLength(result, attrs_));
      TENON_ASSIGN_OR_RETURN(const Endpoint first, Find(found->second));
      const bool is_list = !result.number_attr.empty() || !result.type_list_attr.empty();
      for (int i = 0; i < (is_list ? length : 1); ++i) {
        const Endpoint value = {first.node, first.index + i};
        if (value.index < first.node->num_outputs()) {
          body.results.push_back(value);
          continue;
        }
        return InvalidArgument("its result '", result.name, "' has ", length, " tensors, '",
                               found->second, "' has fewer");
      }
    }
    for (const std::string& name : function_.control_results) {
      TENON_ASSIGN_OR_RETURN(Node * node, FindNode(name));
      body.effects.push_back(node);
    }
    if (function_.control_results.empty() && RunsAllEffects(builder_.call(), builder_.apart())) {
      const auto add = [&](std::string_view name, std::string_view op,
                           const std::vector<Node*>& after) {
        return builder_.Add(name, op, {}, {}, after);
      };
      TENON_ASSIGN_OR_RETURN(body.effects, EndsOfEffects(builder_.graph(), add, added_, start_));
    }
    return body;
  }

  CallBuilder& builder_;
  Graph& graph_;
  const FunctionDefinition& function_;
  const AttributeMap attrs_;
  const std::vector<Endpoint>& arguments_;
  Node* const start_;
  std::string prefix_;
  flat_hash_set<std::string_view> names_;  // of the body's nodes
  StringMap<std::pair<size_t, int64_t>> argument_places_;
  StringMap<Node*> nodes_;
  std::vector<Node*> added_;
};

}  // namespace

CallBuilder::CallBuilder(Graph& graph, int64_t max_nodes, const Node& call,
                         std::shared_ptr<const CallStack> stack, std::vector<AddedNode>& added)
    : graph_(graph),
      max_nodes_(max_nodes),
      call_(call),
      device_(call.requested_device()),
      stack_(std::move(stack)),
      added_(added) {}

StatusOr<std::string> CallBuilder::DeviceOf(std::string_view wish) const {
  if (is_put_) return device_;
  return MergeDeviceNames(device_, wish);
}

Status CallBuilder::CheckSize() const {
  if (graph_.num_nodes() <= max_nodes_) return OkStatus();
  return ResourceExhausted("with the bodies of its functions the graph has more than ", max_nodes_,
                           " nodes");
}

StatusOr<Node*> CallBuilder::Start() {
  if (start_ != nullptr) return start_;
  std::vector<Node*> after = call_.control_inputs();
  for (const Endpoint& in : call_.inputs()) after.push_back(in.node);
  if (after.empty()) return nullptr;
  TENON_ASSIGN_OR_RETURN(start_, Add("start", "NoOp", {}, {}, after));
  return start_;
}

StatusOr<std::vector<Endpoint>> CallBuilder::Arguments() {
  std::vector<Endpoint> arguments = call_.inputs();
  for (Endpoint& argument : arguments) {
    const bool is_ref = IsRef(argument.node->output_type(argument.index));
    if (call_.control_inputs().empty() && !is_ref) continue;
    TENON_ASSIGN_OR_RETURN(argument, AddIdentity("argument", argument, call_.control_inputs()));
  }
  return arguments;
}

StatusOr<Node*> CallBuilder::Add(std::string_view name, std::string_view op, AttributeMap attrs,
                                 const std::vector<Endpoint>& inputs,
                                 const std::vector<Node*>& after) {
  TENON_RETURN_IF_ERROR(CheckSize());
  const std::string unique = graph_.UniqueName(StrCat(call_.name(), "/", name));
  TENON_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(unique, op, std::move(attrs), inputs));
  node->set_requested_device(device_);
  for (Node* before : after) graph_.AddControlEdge(before, node);
  return node;
}

StatusOr<Endpoint> CallBuilder::AddIdentity(std::string_view name, Endpoint value,
                                            const std::vector<Node*>& after) {
  const DType type = BaseType(value.node->output_type(value.index));
  TENON_ASSIGN_OR_RETURN(Node * node, Add(name, "Identity", {{"T", type}}, {value}, after));
  return Endpoint{node, 0};
}

bool CallBuilder::RunsApart(const FunctionDefinition& function, const Body& body,
                            const std::vector<Node*>& nodes) const {
  // A function that is called by its name is inlined in the graph itself, unless that would lose
  // some of its effects.
  if (graph_.functions().Find(call_.op()) != nullptr) {
    return stack_ != nullptr || function.stays_apart || HasLooseEffects(nodes, body.results);
  }
  return RunsAllEffects(call_, apart());
}

StatusOr<CallBuilder::Body> CallBuilder::AddBody(const FunctionName& function,
                                                 const std::vector<Endpoint>& arguments,
                                                 Node* start, std::string_view part) {
  const FunctionDefinition* const definition = graph_.functions().Find(function.name);
  if (definition == nullptr) {
    return InvalidArgument("the graph's library has no function '", function.name, "'");
  }
  int depth = 0;
  for (const CallStack* s = stack_.get(); s != nullptr; s = s->caller.get()) {
    if (s->function == function.name || ++depth > kMaxDepth) {
      return Unimplemented("function '", function.name, "' is called within itself, or within ",
                           kMaxDepth, " others");
    }
  }
  const auto in_function = [&](const Status& status) {
    return Annotate(status, StrCat("function '", function.name, "'"));
  };
  AttributeMap attrs;
  for (const auto& [name, value] : function.attrs) attrs.Set(name, value);
  if (const Status s = ApplySchema(definition->signature.schema, &attrs); !s.ok()) {
    return in_function(s);
  }
  if (static_cast<int64_t>(definition->nodes.size()) > max_nodes_ - graph_.num_nodes()) {
    return in_function(
        ResourceExhausted("with its body the graph has more than ", max_nodes_, " nodes"));
  }
  std::string prefix = call_.name();
  if (!part.empty()) StrAppend(&prefix, "/", part);
  BodyImporter importer(*this, *definition, std::move(attrs), arguments, start);
  StatusOr<Body> body = importer.Run(std::move(prefix));
  if (!body.ok()) return in_function(body.status());
  const auto stack = std::make_shared<const CallStack>(
      CallStack{function.name, stack_, RunsApart(*definition, *body, importer.added())});
  for (Node* node : importer.added()) added_.push_back({node, stack});
  return body;
}

}  // namespace tenon
