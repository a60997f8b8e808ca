// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/gradient_flow.h"
#include "core/loop_frame.h"

// The gradient of a while loop in TensorFlow 1's form (Yu et al. 2018, "Dynamic Control Flow in
// Large-Scale Machine Learning", section 5): the loop counts its iterations, and a second loop goes
// back through as many, each time passing the gradients of the body. What a gradient needs of an
// iteration is pushed on a stack there, and popped here.

namespace tenon {
namespace {

/// A value that goes round: Enter -> Merge -> Switch -> ... -> NextIteration -> Merge, and out by
/// Exit.
struct LoopVariable {
  Output enter;
  Node* merge = nullptr;
  Node* choice = nullptr;  // the Switch: output 0 leaves, 1 stays
  Node* back = nullptr;    // NextIteration, once it is there
};

class LoopGradient {
 public:
  LoopGradient(const std::string& loop, const std::vector<Node*>& nodes, GradientFlow* outer)
      : graph_(outer->graph()), nodes_(nodes), outer_(*outer), loop_(loop) {}

  Status Build() {
    const NoControlDependencies free;
    TENON_ASSIGN_OR_RETURN(order_, graph_.TopologicalOrder());
    TENON_RETURN_IF_ERROR(FindVariables());
    FindBranches();
    const bool wanted = std::any_of(variables_.begin(), variables_.end(), [&](const auto& v) {
      Node* const exit = ExitOf(v);
      return exit != nullptr && outer_.Sum(exit).exists();
    });
    if (!wanted) return graph_.error();
    for (const Node* node : nodes_) {
      if (LoopOf(graph_, *node) == loop_) continue;
      return Unimplemented("node '", node->name(),
                           "': gradients through a while loop within a while loop");
    }
    const NameScope scope(StrCat(variables_[0].merge->name(), "_loop_grad"));
    CountIterations();
    BeginBackward();
    TENON_RETURN_IF_ERROR(graph_.error());
    GradientFlow body(graph_, outer_.between(), [this](const Output& v) { return ValueOf(v); });
    std::vector<LoopVariable> gradients;
    for (const LoopVariable& v : variables_) {
      gradients.push_back(Turn(GradientAtEnd(v)));
      if (graph_.error().ok()) body.Add(v.back->input(0), Output(gradients.back().choice, 1));
    }
    TENON_RETURN_IF_ERROR(graph_.error());
    TENON_RETURN_IF_ERROR(PassBody(&body));
    for (size_t i = 0; i < variables_.size(); ++i) {
      const LoopVariable& v = variables_[i];
      Output dx = body.Sum(Output(v.choice, 1));
      if (!dx.exists()) dx = InBody([&] { return ZerosLike(ValueOf(Output(v.choice, 1))); });
      outer_.Add(v.enter.node->input(0), Leave(gradients[i], dx));
    }
    for (const Output& constant : constants_) AddUp(constant, body.Sum(constant));
    TENON_RETURN_IF_ERROR(graph_.error());
    return End();
  }

 private:
  static bool IsEnter(const Node& n) { return n.op() == "Enter" || n.op() == "RefEnter"; }
  static bool IsSwitch(const Node& n) { return n.op() == "Switch" || n.op() == "RefSwitch"; }
  static bool IsConstant(const Node& enter) { return enter.attrs().GetOr("is_constant", false); }

  Status FindVariables() {
    for (Node* node : nodes_) {
      if (LoopOf(graph_, *node) != loop_) continue;
      if (IsEnter(*node) && IsConstant(*node)) constants_.push_back(node);
      if (!node->registration().is_loop_back) continue;
      LoopVariable v;
      v.back = node;
      for (const OutEdge& e : node->out_edges()) {
        if (e.output != kControlSlot) v.merge = e.dst;
      }
      for (int i = 0; v.merge != nullptr && i < v.merge->num_inputs(); ++i) {
        if (IsEnter(*v.merge->input(i).node)) v.enter = v.merge->input(i);
      }
      if (v.enter.exists()) v.choice = ChoiceOf(*v.merge);
      if (v.choice == nullptr) {
        return InvalidArgument("node '", node->name(),
                               "': a value of a while loop goes from Enter and NextIteration to a "
                               "Merge, then to a Switch on the LoopCond");
      }
      condition_ = v.choice->input(1);
      if (HasGradients(v.enter.dtype())) variables_.push_back(v);
    }
    return OkStatus();
  }

  /// In how many branches within the body each node stands: those run in some iterations only.
  void FindBranches() {
    branches_.resize(graph_.num_ids());
    for (const Node* node : order_) {
      int depth = 0;
      for (const Endpoint& in : node->inputs()) {
        if (in.node->registration().is_loop_back) continue;
        depth = std::max(depth, branches_[in.node->id()]);
      }
      for (const Node* control : node->control_inputs()) {
        depth = std::max(depth, branches_[control->id()]);
      }
      if (IsSwitch(*node) && node->input(1).node->op() != "LoopCond") ++depth;
      if (node->op() == "Merge" || node->op() == "RefMerge") depth = std::max(0, depth - 1);
      branches_[node->id()] = IsEnter(*node) ? 0 : depth;  // what is around is no matter
    }
  }

  static Node* ChoiceOf(const Node& merge) {
    for (const OutEdge& e : merge.out_edges()) {
      const bool chooses = IsSwitch(*e.dst) && e.input == 0;
      if (chooses && e.dst->input(1).node->op() == "LoopCond") return e.dst;
    }
    return nullptr;
  }

  /// What gives the value after the loop; null when nobody wants it.
  static Node* ExitOf(const LoopVariable& v) {
    for (const OutEdge& e : v.choice->out_edges()) {
      if (e.output == 0 && (e.dst->op() == "Exit" || e.dst->op() == "RefExit")) return e.dst;
    }
    return nullptr;
  }

  static Output ZerosLike(const Output& x) { return NodeBuilder("ZerosLike").Input(x).Output(); }

  Output Enter(const Output& value, const std::string& frame, bool is_constant) const {
    return NodeBuilder("Enter")
        .Input(value)
        .Attr("frame_name", frame)
        .Attr("is_constant", is_constant)
        .Attr("parallel_iterations",
              variables_[0].enter.node->attrs().GetOr<int64_t>("parallel_iterations", 10))
        .Output();
  }
  /// A value that goes round, up to its Switch.
  LoopVariable GoRound(const Output& initial, const std::string& frame,
                       const std::function<Output(const Output& merged)>& condition) const {
    LoopVariable v;
    v.enter = Enter(initial, frame, false);
    v.merge = NodeBuilder("Merge").Inputs({v.enter, v.enter}).Finish();
    const Output merged(v.merge, 0);
    v.choice = NodeBuilder("Switch").Input(merged).Input(condition(merged)).Finish();
    return v;
  }
  void GoBack(LoopVariable* v, const Output& next) {
    v->back = NodeBuilder("NextIteration").Input(next).Finish();
    if (graph_.error().ok()) graph_.Fail(graph_.Connect({v->back, 0}, v->merge, 1));
  }

  /// Lets the loop count its iterations.
  void CountIterations() {
    const Output zero = NodeBuilder("Const")
                            .Attr("value", Tensor::Scalar<int32_t>(0))
                            .Attr("dtype", DType::kInt32)
                            .Output();
    counter_ = GoRound(zero, loop_, [&](const Output&) { return condition_; });
    const Output count(counter_.choice, 1);
    forward_ = NodeBuilder("Identity").Input(count).Finish();
    next_ = NodeBuilder("Add").Input(Output(forward_)).Input(1).Finish();
    GoBack(&counter_, next_);
  }

  /// The loop that counts down to 0.
  void BeginBackward() {
    const Output total = NodeBuilder("Exit").Input(Output(counter_.choice, 0)).Output();
    // Names of nodes are unique, frames need to be.
    frame_ = StrCat(total.name(), "/backward");
    down_ = GoRound(total, frame_, [&](const Output& left) {
      const Output more = NodeBuilder("GreaterEqual").Input(left).Input(1).Output();
      return going_ = NodeBuilder("LoopCond").Input(more).Output();
    });
    backward_ = NodeBuilder("Identity").Input(Output(down_.choice, 1)).Finish();
    before_ = NodeBuilder("Sub").Input(Output(backward_)).Input(1).Finish();
    GoBack(&down_, before_);
  }

  /// The gradient of what the loop leaves in `v`.
  Output GradientAtEnd(const LoopVariable& v) {
    Node* exit = ExitOf(v);
    if (exit == nullptr) exit = NodeBuilder("Exit").Input(Output(v.choice, 0)).Finish();
    const Output dy = outer_.Sum(exit);
    return dy.exists() ? dy : ZerosLike(exit);
  }
  /// A gradient that goes round the backward loop; output 1 of its choice is for the body.
  LoopVariable Turn(const Output& initial) const {
    return GoRound(initial, frame_, [&](const Output&) { return going_; });
  }
  /// `next` is its value for the iteration before. The value after the last one.
  Output Leave(LoopVariable v, const Output& next) {
    GoBack(&v, next);
    return NodeBuilder("Exit").Input(Output(v.choice, 0)).Output();
  }

  /// What `build` makes is part of each iteration of the backward loop.
  Output InBody(const std::function<Output()>& build) const {
    const ControlDependencies each({Output(backward_)});
    return build();
  }

  Status PassBody(GradientFlow* body) {
    const ControlDependencies each({Output(backward_)});
    const int first = graph_.num_ids();
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      Node* const node = *it;
      if (!outer_.Between(node) || node->registration().is_loop_back || IsEnter(*node)) continue;
      if (LoopFrameOf(graph_, *node) != loop_) continue;
      const bool goes_round = std::any_of(variables_.begin(), variables_.end(), [&](const auto& v) {
        return node == v.choice || node == v.merge;
      });
      if (goes_round) continue;
      TENON_RETURN_IF_ERROR(body->Pass(node));
    }
    // Nodes wait for the iteration through their inputs, unless these come from outside the loop.
    for (int id = first; id < graph_.num_ids(); ++id) {
      Node* const node = graph_.node(id);
      const bool inside =
          node != nullptr && std::any_of(node->inputs().begin(), node->inputs().end(),
                                         [&](const Endpoint& in) { return !IsEnter(*in.node); });
      if (inside && !IsPop(*node)) graph_.RemoveControlEdge(backward_, node);
    }
    return graph_.error();
  }

  /// The gradient of what enters once, for all iterations: the sum of theirs.
  void AddUp(const Output& constant, const Output& dx) {
    if (!dx.exists()) return;
    const Output x = constant.node->input(0);
    LoopVariable sum =
        Turn(x.dtype() == DType::kResource ? VariableZeros(x, dx.dtype()) : ZerosLike(x));
    const Output next = NodeBuilder("Add").Input(Output(sum.choice, 1)).Input(dx).Output();
    outer_.Add(x, Leave(sum, next));
  }
  static Output VariableZeros(const Output& handle, DType dtype) {
    const Output shape = NodeBuilder("VariableShape").Input(handle).Output();
    return NodeBuilder("Fill").Input(shape).Input(Tensor::Zeros(dtype, {})).Output();
  }

  /// What the loop's `value` was in the iteration that the backward loop is at.
  Output ValueOf(const Output& value) {
    Output& known = values_[{value.node, value.index}];
    if (known.exists() || !graph_.error().ok()) return known;
    // What gradients wait for is no matter of the loop forward.
    const NoControlDependencies free;
    Node& node = *value.node;
    if (IsEnter(node) && IsConstant(node)) {
      known = Enter(node.input(0), frame_, true);
    } else if (node.op() == "Const") {
      const ControlDependencies each({Output(backward_)});
      known = NodeBuilder("Const")
                  .Attr("value", *node.attrs().Find("value"))
                  .Attr("dtype", *node.attrs().Find("dtype"))
                  .Output();
    } else {
      known = Restored(value);
    }
    return known;
  }

  Output Restored(const Output& value) {
    Stack s = {value.node, graph_.num_ids()};
    const ColocateWith beside(value);
    const Output stack = NodeBuilder("StackV2").Input(-1).Attr("elem_type", value.dtype()).Output();
    const Output forward = Enter(stack, loop_, true), backward = Enter(stack, frame_, true);
    {
      const ControlDependencies in_order({Output(forward_)});
      s.push = NodeBuilder("StackPushV2").Input(forward).Input(value).Finish();
    }
    const ControlDependencies each({Output(backward_)});
    s.pop = NodeBuilder("StackPopV2").Input(backward).Attr("elem_type", value.dtype()).Finish();
    s.result = s.pop;
    if (value.shape().IsFullyKnown()) {
      s.result =
          NodeBuilder("EnsureShape").Input(Output(s.pop)).Attr("shape", value.shape()).Finish();
    }
    s.end = graph_.num_ids();
    stacks_.push_back(s);
    return s.result;
  }
  static bool IsPop(const Node& node) { return node.op() == "StackPopV2"; }

  /// An iteration pushes and pops before the next one does. What gradient functions have asked for
  /// and not used goes.
  Status End() {
    std::vector<Node*> unused;
    for (const Stack& s : stacks_) {
      if (s.result->out_edges().empty()) {
        for (int id = s.begin; id < s.end; ++id) unused.push_back(graph_.node(id));
        continue;
      }
      if (branches_[s.of->id()] > 0) {
        return Unimplemented("node '", s.of->name(),
                             "': gradients that need a value of a branch within a while loop");
      }
      graph_.AddControlEdge(s.push, next_);
      graph_.AddControlEdge(s.pop, before_);
    }
    graph_.RemoveNodes(unused);
    return OkStatus();
  }

  /// What carries a value from the loop forward to the loop back.
  struct Stack {
    const Node* of;
    int begin, end = 0;  // the ids of its nodes
    Node *push = nullptr, *pop = nullptr, *result = nullptr;
  };

  Graph& graph_;
  const std::vector<Node*>& nodes_;
  GradientFlow& outer_;
  const std::string loop_;  // the name of its frame
  std::vector<Node*> order_;
  std::vector<int> branches_;  // by id
  std::vector<LoopVariable> variables_;
  std::vector<Output> constants_;
  Output condition_;
  LoopVariable counter_, down_;
  Node *forward_ = nullptr, *next_ = nullptr;     // the iteration, and the one after
  Node *backward_ = nullptr, *before_ = nullptr;  // the same of the loop back
  Output going_;                                  // its LoopCond
  std::string frame_;
  flat_hash_map<std::pair<Node*, int>, Output> values_;
  std::vector<Stack> stacks_;
};

}  // namespace

std::string LoopOf(Graph& graph, const Node& node) {
  const bool leaves = node.op() == "Exit" || node.op() == "RefExit";
  return LoopFrameOf(graph, leaves ? *node.input(0).node : node);
}

Status PassLoop(const std::string& loop, const std::vector<Node*>& nodes, GradientFlow* flow) {
  return LoopGradient(loop, nodes, flow).Build();
}

}  // namespace tenon
