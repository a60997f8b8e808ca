// SPDX-License-Identifier: Apache-2.0
#include "runtime/compile/step_graph.h"

#include <algorithm>

#include "core/base/closest_name.h"
#include "core/op/op_traits.h"
#include "runtime/functions/expansion.h"
#include "runtime/functions/functions_needed.h"

namespace tenon {
namespace {

using FeedMap = flat_hash_map<std::pair<const Node*, int>, int>;

class SignatureCutter {
 public:
  SignatureCutter(const Graph& graph, const Signature& signature)
      : graph_(graph),
        signature_(signature),
        step_(graph.registry()),
        has_feed_(graph.num_ids(), false) {}

  StatusOr<Graph> Build() {
    step_.versions() = graph_.versions();
    step_.set_functions(graph_.shared_functions());
    if (signature_.fetches.empty() && signature_.targets.empty()) {
      return InvalidArgument("Must specify at least one target to fetch or execute.");
    }
    TENON_RETURN_IF_ERROR(ResolveFeeds());
    TENON_RETURN_IF_ERROR(ResolveConnections());
    TENON_RETURN_IF_ERROR(ResolveFetches());
    TENON_RETURN_IF_ERROR(ResolveTargets());
    TENON_RETURN_IF_ERROR(CopyNeeded());
    TENON_RETURN_IF_ERROR(ConnectNeeded());
    TENON_RETURN_IF_ERROR(AddRetvals());
    step_.set_functions(FunctionsNeeded(step_));
    return std::move(step_);
  }

 private:
  Status ResolveFeeds() {
    for (size_t i = 0; i < signature_.feeds.size(); ++i) {
      const std::string& text = signature_.feeds[i];
      const StatusOr<TensorName> parsed = ParseTensorName(text);
      const Node* node = parsed.ok() ? graph_.Find(parsed->node) : nullptr;
      if (node == nullptr) {
        return NotFound("FeedInputs: unable to find feed output ", text, Hint(text));
      }
      const TensorName& name = *parsed;
      if (name.index >= node->num_outputs()) {
        return InvalidArgument("FeedInputs: ", text, " should have output index < ",
                               node->num_outputs());
      }
      has_feed_[node->id()] = true;
      if (!feeds_.emplace(std::pair(node, name.index), static_cast<int>(i)).second) {
        return InvalidArgument("Endpoint \"", name.node, ":", name.index, "\" fed more than once.");
      }
    }
    return OkStatus();
  }

  Status ResolveConnections() {
    for (const auto& [from, to] : signature_.connections) {
      Endpoint ends[2];
      const std::string* texts[] = {&from, &to};
      for (int i = 0; i < 2; ++i) {
        TENON_ASSIGN_OR_RETURN(const TensorName name, ParseTensorName(*texts[i]));
        ends[i] = {graph_.Find(name.node), name.index};
        if (ends[i].node == nullptr) {
          return NotFound("TensorConnection: unable to find tensor ", *texts[i]);
        }
        if (name.index >= ends[i].node->num_outputs()) {
          return InvalidArgument("TensorConnection: ", *texts[i], " should have output index < ",
                                 ends[i].node->num_outputs());
        }
      }
      if (IsFed(ends[1])) return InvalidArgument(to, " is both fed and connected.");
      if (!connections_.emplace(std::pair(ends[1].node, ends[1].index), ends[0]).second) {
        return InvalidArgument(to, " is connected more than once.");
      }
    }
    return OkStatus();
  }

  /// What stands in the place of an input.
  Endpoint Connected(Endpoint in) const {
    while (true) {
      if (!connections_.empty()) {
        const auto found = connections_.find({in.node, in.index});
        if (found != connections_.end()) return found->second;
      }
      if (!in.node->schema().Has(OpTrait::kIdentities) || IsFed(in) ||
          in.node->attrs().Find(kManyResults) == nullptr) {
        return in;
      }
      in = in.node->input(in.index);
    }
  }

  Status ResolveFetches() {
    for (const std::string& text : signature_.fetches) {
      const StatusOr<TensorName> parsed = ParseTensorName(text);
      Node* node = parsed.ok() ? graph_.Find(parsed->node) : nullptr;
      if (node == nullptr) return NotFound("FetchOutputs node ", text, ": not found", Hint(text));
      const TensorName& name = *parsed;
      if (node->num_outputs() == 0) {
        return InvalidArgument("Tried to fetch data for '", text,
                               "', which produces no output.  To run to a node but not fetch any ",
                               "data, pass '", text, "' as an argument to the ",
                               "'target_node_names' argument of the Session::Run API.");
      }
      if (name.index >= node->num_outputs()) {
        return InvalidArgument("FetchOutputs ", text, ": output index too large, must be < ",
                               node->num_outputs());
      }
      if (feeds_.contains({node, name.index})) {
        return InvalidArgument(text, " is both fed and fetched.");
      }
      fetches_.push_back(BeforeLoops({node, name.index}));
      if (!IsFed(fetches_.back())) stack_.push_back(fetches_.back().node);
    }
    return OkStatus();
  }

  /// The same value outside the loop that it enters, in whose iterations it would be given anew.
  Endpoint BeforeLoops(Endpoint e) const {
    while (e.node->is_enter() && e.node->control_inputs().empty() && !IsFed(e)) {
      e = Connected(e.node->input(0));
    }
    return e;
  }

  Status ResolveTargets() {
    std::string missing, hint;
    for (const std::string& name : signature_.targets) {
      // A tensor's name stands for the node that gives it.
      const StatusOr<TensorName> parsed = ParseTensorName(name);
      Node* node = parsed.ok() ? graph_.Find(parsed->node) : nullptr;
      if (node == nullptr) {
        StrAppend(&missing, name, " ");
        if (hint.empty()) hint = Hint(name);
      } else {
        stack_.push_back(node);
      }
    }
    if (!missing.empty()) {
      if (!hint.empty()) missing.pop_back();
      return NotFound("PruneForTargets: Some target nodes not found: ", missing, hint);
    }
    return OkStatus();
  }

  /// Which name was meant, "; did you mean X?", where the graph is not too large to look for it.
  std::string Hint(const std::string& name) const {
    constexpr size_t kMostNodes = 10000;
    const auto nodes = graph_.nodes();
    if (nodes.size() > kMostNodes) return "";
    std::vector<std::string> names;
    for (const Node* n : nodes) names.push_back(n->name());
    return DidYouMean(name.substr(0, name.rfind(':')), names);
  }

  bool IsFed(const Endpoint& e) const {
    return has_feed_[e.node->id()] && feeds_.contains({e.node, e.index});
  }

  /// A control edge from a fed placeholder asks for nothing: its value is there from the start.
  bool IsFedPlaceholder(const Node& node) const {
    return node.is_placeholder() && feeds_.contains({&node, 0});
  }

  Status CopyNeeded() {
    copies_.assign(graph_.num_ids(), nullptr);
    std::vector<bool> needed(graph_.num_ids(), false);
    while (!stack_.empty()) {
      const Node* node = stack_.back();
      stack_.pop_back();
      if (needed[node->id()]) continue;
      needed[node->id()] = true;
      for (const Endpoint& input : node->inputs()) {
        const Endpoint in = Connected(input);
        if (!IsFed(in)) stack_.push_back(in.node);
      }
      for (Node* c : node->control_inputs()) {
        if (!IsFedPlaceholder(*c)) stack_.push_back(c);
      }
    }
    step_.Reserve(static_cast<int>(std::count(needed.begin(), needed.end(), true)));
    // In the order of the graph, so that a step graph does not depend on the order of the fetches.
    for (int id = 0; id < graph_.num_ids(); ++id) {
      if (!needed[id]) continue;
      const Node& node = *graph_.node(id);
      if (node.schema().is_runtime_only()) {
        return InvalidArgument("node '", node.name(), "': op ", node.op(),
                               " is for the runtime's own use");
      }
      TENON_RETURN_IF_ERROR(graph_.NodeError(node));
      originals_.push_back(&node);
      TENON_ASSIGN_OR_RETURN(copies_[id], step_.CopyNode(*graph_.node(id)));
    }
    return OkStatus();
  }

  Status ConnectNeeded() {
    for (const Node* node : originals_) {
      Node* copy = copies_[node->id()];
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Endpoint in = Connected(node->input(i));
        Endpoint from{copies_[in.node->id()], in.index};
        if (IsFed(in)) {
          TENON_ASSIGN_OR_RETURN(from.node, ArgFor(in, node->assigned_device()));
          from.index = 0;
        }
        TENON_RETURN_IF_ERROR(step_.Connect(from, copy, i));
      }
      for (const Node* c : node->control_inputs()) {
        if (!IsFedPlaceholder(*c)) step_.AddControlEdge(copies_[c->id()], copy);
      }
    }
    return OkStatus();
  }

  StatusOr<Node*> ArgFor(const Endpoint& fed, const std::string& device) {
    const int index = feeds_.at({fed.node, fed.index});
    Node*& arg = args_[{index, device}];
    if (arg != nullptr) return arg;
    const DType type = BaseType(fed.node->output_type(fed.index));
    const std::string name = step_.UniqueName(StrCat("_arg_", fed.node->name(), "_", fed.index));
    TENON_ASSIGN_OR_RETURN(
        arg, step_.AddNode(name, "_Arg", {{"T", type}, {"index", static_cast<int64_t>(index)}}));
    arg->set_assigned_device(device);
    return arg;
  }

  Status AddRetvals() {
    for (size_t i = 0; i < fetches_.size(); ++i) {
      const Endpoint& fetch = fetches_[i];
      Endpoint from{copies_[fetch.node->id()], fetch.index};
      if (IsFed(fetch)) {
        TENON_ASSIGN_OR_RETURN(from.node, ArgFor(fetch, fetch.node->assigned_device()));
        from.index = 0;
      }
      const std::string name =
          step_.UniqueName(StrCat("_retval_", from.node->name(), "_", from.index, "_", i));
      TENON_ASSIGN_OR_RETURN(Node * retval,
                             step_.AddNode(name, "_Retval",
                                           {{"T", BaseType(from.node->output_type(from.index))},
                                            {"index", static_cast<int64_t>(i)}},
                                           {from}));
      retval->set_assigned_device(from.node->assigned_device());
    }
    return OkStatus();
  }

  const Graph& graph_;
  const Signature& signature_;
  Graph step_;
  FeedMap feeds_;
  std::vector<bool> has_feed_;  // by a node's id: some output of it
  flat_hash_map<std::pair<const Node*, int>, Endpoint> connections_;
  std::vector<Endpoint> fetches_;
  std::vector<Node*> stack_;
  std::vector<const Node*> originals_;
  std::vector<Node*> copies_;
  flat_hash_map<std::pair<int, std::string>, Node*> args_;
};

}  // namespace

StatusOr<Graph> MakeStepGraph(const Graph& graph, const Signature& signature) {
  return SignatureCutter(graph, signature).Build();
}

}  // namespace tenon
