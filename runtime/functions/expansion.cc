// SPDX-License-Identifier: Apache-2.0
#include "runtime/functions/expansion.h"

#include <algorithm>

#include "core/build/loop_frame.h"
#include "core/device/device_name.h"
#include "core/gradient/gradients.h"
#include "core/gradient/loop_branches.h"
#include "core/op/function.h"
#include "runtime/functions/body.h"
#include "runtime/functions/control_flow.h"

namespace tenon {
namespace {

using AddedNode = CallBuilder::AddedNode;
using Body = CallBuilder::Body;

class Expander {
 public:
  Expander(Graph* graph, int64_t max_nodes) : graph_(*graph), max_nodes_(max_nodes) {}

  Status Run(int first_id) {
    std::vector<AddedNode> pending;
    for (int id = first_id; id < graph_.num_ids(); ++id) {
      if (Node* const node = graph_.node(id)) pending.push_back({node, nullptr});
    }
    return ExpandAll(std::move(pending), /*keep_errors=*/true);
  }
  bool has_expanded() const { return has_expanded_; }

 private:
  using Lowering = StatusOr<Body> (Expander::*)(CallBuilder&);

  /// Replaces the calls among `pending`, and those that are added on the way. A call that cannot be
  /// replaced stays as it is, with its error, or ends it all unless errors are to be kept.
  Status ExpandAll(std::vector<AddedNode> pending, bool keep_errors) {
    while (!pending.empty()) {
      const AddedNode next = pending.back();
      pending.pop_back();
      if (!IsCall(graph_, *next.node)) continue;
      // Only a step that needs such a node fails.
      if (next.stack == nullptr && !MissingFunction(graph_, *next.node).empty()) continue;
      const int first_id = graph_.num_ids();
      const size_t num_pending = pending.size();
      const std::string name = next.node->name(), op = next.node->op();
      const Status s = Expand(next, pending);
      if (s.ok()) {
        has_expanded_ = true;
        continue;
      }
      const Status error = Annotate(s, StrCat("node '", name, "' (", op, ")"));
      const bool is_there = graph_.Find(name) == next.node;
      if (!keep_errors || !is_there || s.code() == StatusCode::kResourceExhausted) return error;
      pending.resize(num_pending);
      max_nodes_ -= graph_.num_ids() - first_id;  // what is added in vain is work too
      graph_.RemoveNodesFrom(first_id);
      graph_.SetNodeError(*next.node, error);
    }
    return OkStatus();
  }

  Status Expand(const AddedNode& call, std::vector<AddedNode>& pending) {
    CallBuilder builder(graph_, max_nodes_, *call.node, call.stack, pending);
    TENON_ASSIGN_OR_RETURN(const Body body, Lower(builder, pending));
    return Replace(builder, call.node, body);
  }

  StatusOr<Body> Lower(CallBuilder& builder, std::vector<AddedNode>& pending) {
    const Node& call = builder.call();
    const CallKind kind = call.schema().call;
    if (kind == CallKind::kIf) return LowerIf(builder);
    if (kind == CallKind::kCase) return LowerCase(builder);
    if (kind == CallKind::kWhile) return LowerWhile(builder);
    if (kind == CallKind::kFor) return LowerFor(builder);
    TENON_ASSIGN_OR_RETURN(const FunctionName function, Called(call));
    if (kind == CallKind::kGradient) return LowerGradient(builder, function, pending);
    TENON_ASSIGN_OR_RETURN(std::vector<Endpoint> arguments, builder.Arguments());
    TENON_ASSIGN_OR_RETURN(Node * start, builder.Start());
    if (kind == CallKind::kRemote) {
      TENON_ASSIGN_OR_RETURN(std::string device, TargetOf(call));
      builder.PutOn(std::move(device));
      arguments.erase(arguments.begin());
    }
    return builder.AddBody(function, arguments, start, "");
  }

  /// Where the function of a RemoteCall runs: on the device that its first input names, and for
  /// what that leaves open where the call asks to be.
  static StatusOr<std::string> TargetOf(const Node& call) {
    const Node* source = call.input(0).node;
    while (source->is_identity()) source = source->input(0).node;
    const Attribute* const value = source->attrs().Find("value");
    const Tensor* const target = value == nullptr ? nullptr : value->get_if<Tensor>();
    if (!source->is_constant() || target == nullptr || target->dtype() != DType::kString ||
        target->num_elements() != 1) {
      return Unimplemented("its target must be a constant, one text, found '", source->name(),
                           "' (", source->op(), ")");
    }
    return MergeDeviceNames(call.requested_device(), target->scalar<TString>());
  }

  StatusOr<FunctionName> Called(const Node& call) const {
    if (graph_.functions().Find(call.op()) == nullptr) return call.attrs().Get<FunctionName>("f");
    FunctionName function{call.op(), {}};
    for (const auto& [name, value] : call.attrs()) function.attrs.emplace_back(name, value);
    return function;
  }

  /// The inputs are the function's arguments and the gradients of its results; the outputs, the
  /// gradients of the arguments.
  StatusOr<Body> LowerGradient(CallBuilder& builder, const FunctionName& function,
                               std::vector<AddedNode>& pending) {
    TENON_ASSIGN_OR_RETURN(std::vector<Endpoint> arguments, builder.Arguments());
    TENON_ASSIGN_OR_RETURN(Node * start, builder.Start());
    const FunctionDefinition* const definition = graph_.functions().Find(function.name);
    if (definition != nullptr && !definition->gradient.empty()) {
      TENON_ASSIGN_OR_RETURN(Body gradient, builder.AddBody({definition->gradient, function.attrs},
                                                            arguments, start, ""));
      const auto wanted = static_cast<size_t>(builder.call().num_outputs());
      if (gradient.results.size() == wanted) return gradient;
      return InvalidArgument("SymGrad expects to return ", wanted, " tensors but get ",
                             gradient.results.size(), " from '", definition->gradient, "' instead");
    }
    const size_t num_xs = static_cast<size_t>(builder.call().num_outputs());
    if (arguments.size() < num_xs || arguments.empty()) {
      return InvalidArgument("found ", arguments.size(), " inputs for ", num_xs, " gradients");
    }
    // Nodes of their own: an argument given twice has two gradients. In a loop's body results lead
    // back to arguments, which would count as a way between them; it is cut meanwhile.
    std::vector<Endpoint> xs;
    std::vector<Node*> cuts;
    for (size_t i = 0; i < num_xs; ++i) {
      const auto [node, output] = arguments[i];
      TENON_ASSIGN_OR_RETURN(cuts.emplace_back(),
                             builder.Add("cut", "Placeholder",
                                         {{"dtype", BaseType(node->output_type(output))},
                                          {"shape", node->output_shape(output)}},
                                         {}, {start}));  // in the same loop
      TENON_ASSIGN_OR_RETURN(xs.emplace_back(), builder.AddIdentity("x", {cuts.back(), 0}));
    }
    const size_t before = pending.size();
    const int first_id = graph_.num_ids();
    TENON_ASSIGN_OR_RETURN(Body forward, builder.AddBody(function, xs, start, ""));
    for (Endpoint& y : forward.results) {
      TENON_ASSIGN_OR_RETURN(y, builder.AddIdentity("y", y));
    }
    // Gradients are derived from ops: the calls within come first.
    TENON_RETURN_IF_ERROR(ExpandAll(std::vector<AddedNode>(pending.begin() + before, pending.end()),
                                    /*keep_errors=*/false));
    pending.resize(before);
    TENON_RETURN_IF_ERROR(CheckLoopGradients(first_id, start));
    TENON_ASSIGN_OR_RETURN(Body gradient,
                           Differentiate(builder, xs, forward.results,
                                         {arguments.begin() + num_xs, arguments.end()}, start));
    for (size_t i = 0; i < num_xs; ++i) {
      TENON_RETURN_IF_ERROR(graph_.Connect(arguments[i], xs[i].node, 0));
    }
    graph_.RemoveNodes(cuts);
    return gradient;
  }

  /// ResourceExhausted when gradients of loops may take too many nodes: each value of the loops
  /// among the nodes from `first_id` on may go through all branches that it is in. `start` is where
  /// the gradients are computed.
  Status CheckLoopGradients(int first_id, const Node* start) {
    if (!graph_.has_loops()) return OkStatus();
    constexpr int64_t kNodesOfBranch = 16;
    const std::string here = start == nullptr ? "" : LoopFrameOf(graph_, *start);
    TENON_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_.TopologicalOrder());
    const LoopBranches branches(graph_, order);
    int64_t left = max_nodes_ - graph_.num_nodes();
    for (Node* node : order) {
      if (node->id() < first_id || LoopFrameOf(graph_, *node) == here) continue;
      // Gradients make the outputs of constants and Switch nodes again.
      if (node->flow() == FlowKind::kSwitch || node->is_constant()) continue;
      for (int i = 0; i < node->num_outputs(); ++i) {
        const int branch = branches.Of(Output(node, i));
        if (branch != LoopBranches::kNone) left -= kNodesOfBranch * branches[branch].depth;
      }
      if (left < 0) {
        return ResourceExhausted("with the gradients of its loops the graph may have more than ",
                                 max_nodes_, " nodes: they have too many branches in each other");
      }
    }
    return OkStatus();
  }

  StatusOr<Body> Differentiate(CallBuilder& builder, const std::vector<Endpoint>& xs,
                               const std::vector<Endpoint>& ys, const std::vector<Endpoint>& dys,
                               Node* start) {
    if (ys.size() != dys.size()) {
      return InvalidArgument("found the gradients of ", dys.size(), " results, wanted ", ys.size());
    }
    const auto outputs = [](const std::vector<Endpoint>& values) {
      return std::vector<Output>(values.begin(), values.end());
    };
    const Graph& graph = graph_;
    TENON_RETURN_IF_ERROR(graph.error());
    const int first = graph_.num_ids();
    std::vector<Output> dxs;
    {
      const GraphBuilding building(graph_);
      const NameScope scope(StrCat(builder.call().name(), "/gradient"));
      // Constants of the gradient too are in the loop that the call is in.
      const ControlDependencies within({start});
      std::vector<Output> floating_ys, floating_dys;
      for (size_t i = 0; i < ys.size(); ++i) {
        const DType type = BaseType(ys[i].node->output_type(ys[i].index));
        if (!IsFloating(type) && !IsComplex(type)) continue;
        floating_ys.push_back(ys[i]);
        floating_dys.push_back(dys[i]);
      }
      dxs =
          Gradients(floating_ys, outputs(xs), {.grad_ys = floating_dys, .allow_unconnected = true});
      for (size_t i = 0; i < dxs.size(); ++i) {
        if (!dxs[i].exists()) {
          dxs[i] = NodeBuilder("ZerosLike").Input(Output(xs[i])).Output();
        }
      }
    }
    TENON_RETURN_IF_ERROR(graph_.TakeError());
    for (int id = first; id < graph_.num_ids(); ++id) {
      if (Node* node = graph_.node(id)) {
        node->set_requested_device(builder.call().requested_device());
      }
    }
    Body body;
    for (const Output& dx : dxs) body.results.push_back({dx.node, dx.index});
    return body;
  }

  /// What those wait for that wait for a call with results: as in TensorFlow, what it does beside
  /// giving them, and the end of a loop. Null when nobody does, or nothing holds up the call.
  StatusOr<Node*> EndOf(CallBuilder& builder, const Body& body) {
    const auto& consumers = builder.call().out_edges();
    const bool is_awaited = std::any_of(consumers.begin(), consumers.end(),
                                        [](const OutEdge& e) { return e.input == kControlSlot; });
    if (!is_awaited || builder.call().num_outputs() == 0) return nullptr;
    std::vector<Node*> before = body.effects;
    const CallKind kind = builder.call().schema().call;
    if (kind == CallKind::kWhile || kind == CallKind::kFor) {
      // What a loop does is over when it has ended.
      for (const Endpoint& result : body.results) before.push_back(result.node);
    }
    if (before.empty()) return builder.Start();
    return builder.Add("end", "NoOp", {}, {}, before);
  }

  /// Puts a node of the same name into the call's place.
  Status Replace(CallBuilder& builder, Node* call, const Body& body) {
    const std::string name = call->name(), device = call->requested_device();
    DTypeVector types = call->output_types();
    for (DType& type : types) type = BaseType(type);
    const std::vector<OutEdge> consumers = call->out_edges();
    const std::vector<Node*> before = call->control_inputs();
    if (body.results.size() != types.size()) {
      return InvalidArgument("the function has ", body.results.size(), " results, the node ",
                             types.size(), " outputs");
    }
    std::vector<Endpoint> results = body.results;
    for (size_t i = 0; i < types.size(); ++i) {
      const DType found = BaseType(results[i].node->output_type(results[i].index));
      if (found == types[i]) continue;
      return InvalidArgument("result ", i, " of the function is ", found, ", output ", i,
                             " of the node ", types[i]);
    }
    for (const OutEdge& edge : consumers) {
      if (edge.input == kControlSlot || !IsRef(edge.dst->input_types()[edge.input])) continue;
      return InvalidArgument("results of functions are values, but node '", edge.dst->name(), "' (",
                             edge.dst->op(), ") wants output ", edge.output, " as a reference");
    }
    TENON_ASSIGN_OR_RETURN(Node * end, EndOf(builder, body));
    AttributeMap attrs;
    std::string op = "NoOp";
    if (types.size() == 1) {
      op = "Identity";
      attrs.Set("T", types[0]);
    } else if (types.size() > 1) {
      op = "IdentityN";
      attrs.Set("T", types);
      attrs.Set(kManyResults, true);
      if (!body.effects.empty()) {
        // One node after them all: not an edge from each effect to each result.
        TENON_ASSIGN_OR_RETURN(Node * over, builder.Add("over", "NoOp", {}, {}, body.effects));
        for (Endpoint& result : results) {
          TENON_ASSIGN_OR_RETURN(result, builder.AddIdentity("result", result, {over}));
        }
      }
    }
    graph_.RemoveNode(call);
    TENON_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(name, op, std::move(attrs), results));
    node->set_requested_device(device);
    if (types.size() < 2) {
      for (Node* effect : body.effects) graph_.AddControlEdge(effect, node);
    }
    if (results.empty() && body.effects.empty()) {
      for (Node* n : before) graph_.AddControlEdge(n, node);
    }
    for (const OutEdge& edge : consumers) {
      if (edge.input == kControlSlot) {
        if (types.empty()) {
          graph_.AddControlEdge(node, edge.dst);
        } else if (end != nullptr) {
          graph_.AddControlEdge(end, edge.dst);
        }
        continue;
      }
      // Handles of several devices may come out of one call, so they do not go through one node.
      const bool is_handle = types[edge.output] == DType::kResource;
      const Endpoint from = is_handle ? body.results[edge.output] : Endpoint{node, edge.output};
      TENON_RETURN_IF_ERROR(graph_.Connect(from, edge.dst, edge.input));
      if (is_handle && !body.effects.empty()) graph_.AddControlEdge(node, edge.dst);
    }
    return OkStatus();
  }

  Graph& graph_;
  int64_t max_nodes_;
  bool has_expanded_ = false;
};

}  // namespace

bool IsCall(const Graph& graph, const Node& node) {
  return node.schema().call != CallKind::kNone || graph.functions().Find(node.op()) != nullptr;
}

std::string MissingFunction(const Graph& graph, const Node& node) {
  for (const auto& [name, value] : node.attrs()) {
    std::vector<FunctionName> called;
    if (const auto* one = value.get_if<FunctionName>()) called = {*one};
    if (const auto* several = value.get_if<std::vector<FunctionName>>()) called = *several;
    for (const FunctionName& function : called) {
      if (graph.functions().Find(function.name) == nullptr) return function.name;
    }
  }
  return "";
}

Status ExpandFunctions(Graph* graph, int64_t max_nodes, int first_id) {
  Expander expander(graph, max_nodes);
  TENON_RETURN_IF_ERROR(expander.Run(first_id));
  return expander.has_expanded() ? graph->InferShapes(first_id) : OkStatus();
}

}  // namespace tenon
