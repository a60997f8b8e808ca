// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "core/build/loop_frame.h"
#include "core/gradient/gradient_flow.h"
#include "core/gradient/gradient_rows.h"
#include "core/gradient/loop_branches.h"
#include "core/graph/graph.h"
#include "core/op/op_traits.h"

// The gradient of a while loop in TensorFlow 1's form (Yu et al. 2018, "Dynamic Control Flow in
// Large-Scale Machine Learning", section 5): the loop counts its iterations, and a second loop goes
// back through as many, each time passing the gradients of the body. What a gradient needs of an
// iteration is pushed on a stack there, and popped here. What exists in one branch of a tf.cond is
// pushed and popped in the iterations that take the branch. A loop within a loop is part of the
// body: its stacks hold what all its turns have pushed, one after the other, and its count goes on
// a stack of the loop around.

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
  /// `around` is the loop that this one is in, or null, and `outer` passes what is around this one.
  LoopGradient(const std::string& loop, const std::vector<Node*>& nodes, GradientFlow* outer,
               LoopGradient* around)
      : graph_(outer->graph()), nodes_(nodes), outer_(*outer), around_(around), loop_(loop) {}

  Status Build() {
    const NoControlDependencies free;
    TENON_ASSIGN_OR_RETURN(order_, graph_.TopologicalOrder());
    branches_.emplace(graph_, order_);
    TENON_RETURN_IF_ERROR(FindVariables());
    const bool wanted = std::any_of(variables_.begin(), variables_.end(), [&](const auto& v) {
      Node* const exit = ExitOf(v);
      return exit != nullptr && outer_.SumOfParts(exit).exists();
    });
    if (!wanted) return graph_.error();
    const NameScope scope(StrCat(variables_[0].merge->name(), "_loop_grad"));
    CountIterations();
    BeginBackward();
    TENON_RETURN_IF_ERROR(graph_.error());
    GradientFlow body(graph_, outer_.between(), [this](const Output& v) { return ValueOf(v); });
    std::vector<LoopVariable> gradients;
    for (const LoopVariable& v : variables_) {
      gradients.push_back(GradientRound(GradientAtEnd(v)));
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
    for (const Output& constant : constants_) AddUp(constant, body.SumOfParts(constant));
    TENON_RETURN_IF_ERROR(graph_.error());
    return End();
  }

 private:
  Status FindVariables() {
    for (Node* node : nodes_) {
      if (LoopOf(graph_, *node) != loop_) continue;
      if (node->flow() == FlowKind::kConstantEnter) constants_.push_back(node);
      if (!node->is_next_iteration()) continue;
      LoopVariable v;
      v.back = node;
      for (const OutEdge& e : node->out_edges()) {
        if (e.output != kControlSlot) v.merge = e.dst;
      }
      for (int i = 0; v.merge != nullptr && i < v.merge->num_inputs(); ++i) {
        if (v.merge->input(i).node->is_enter()) v.enter = v.merge->input(i);
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

  static Node* ChoiceOf(const Node& merge) {
    for (const OutEdge& e : merge.out_edges()) {
      const bool chooses = e.dst->flow() == FlowKind::kSwitch && e.input == 0;
      if (chooses && e.dst->input(1).node->schema().Has(OpTrait::kLoopCondition)) return e.dst;
    }
    return nullptr;
  }

  /// What gives the value after the loop; null when nobody wants it.
  static Node* ExitOf(const LoopVariable& v) {
    for (const OutEdge& e : v.choice->out_edges()) {
      if (e.output == 0 && e.dst->is_exit()) return e.dst;
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

  /// A value from outside all loops, in this one and in the one back.
  Output IntoLoop(const Output& value) const {
    return Enter(around_ == nullptr ? value : around_->IntoLoop(value), loop_, true);
  }
  Output IntoLoopBack(const Output& value) const {
    return Enter(around_ == nullptr ? value : around_->IntoLoopBack(value), frame_, true);
  }
  /// What a value before or after this loop is for those who build its gradient.
  Output ValueAround(const Output& value) const {
    return around_ == nullptr ? value : around_->ValueOf(value);
  }
  /// A new node after the loop is in the branch that the loop is in.
  Output After(const Output& value) const {
    if (around_ != nullptr) {
      LoopBranches& branches = *around_->branches_;
      branches.Put(*value.node, branches.Of(variables_[0].enter.node->input(0)));
    }
    return value;
  }

  /// Lets the loop count its iterations. Within a loop each turn begins after the one before, and
  /// only where the loop runs.
  void CountIterations() {
    std::vector<Output> begin;
    if (around_ != nullptr) {
      begin.push_back(NodeBuilder("Identity").Input(variables_[0].enter.node->input(0)).Output());
      begin.emplace_back(around_->forward_);
    }
    const Output zero = [&] {
      const ControlDependencies in_order(begin);
      return NodeBuilder("Const")
          .Attr("value", Tensor::Scalar<int32_t>(0))
          .Attr("dtype", DType::kInt32)
          .Output();
    }();
    counter_ = GoRound(zero, loop_, [&](const Output&) { return condition_; });
    const Output count(counter_.choice, 1);
    forward_ = NodeBuilder("Identity").Input(count).Finish();
    next_ = NodeBuilder("Add").Input(Output(forward_)).Input(1).Finish();
    GoBack(&counter_, next_);
  }

  /// The loop that counts down to 0.
  void BeginBackward() {
    const Output total = After(NodeBuilder("Exit").Input(Output(counter_.choice, 0)).Output());
    // Names of nodes are unique, frames need to be.
    frame_ = StrCat(total.name(), "/backward");
    iterations_ = ValueAround(total);
    down_ = GoRound(iterations_, frame_, [&](const Output& left) {
      const Output more = NodeBuilder("GreaterEqual").Input(left).Input(1).Output();
      return going_ = NodeBuilder("LoopCond").Input(more).Output();
    });
    backward_ = NodeBuilder("Identity").Input(Output(down_.choice, 1)).Finish();
    before_ = NodeBuilder("Sub").Input(Output(backward_)).Input(1).Finish();
    GoBack(&down_, before_);
    if (around_ == nullptr || !graph_.error().ok()) return;
    Node* const end = NodeBuilder("Exit").Input(Output(down_.choice, 0)).Finish();
    around_->turns_.push_back({end, around_->GuardsOf(around_->branches_->Of(total))});
  }

  /// The gradient of what the loop leaves in `v`.
  Output GradientAtEnd(const LoopVariable& v) {
    Node* exit = ExitOf(v);
    if (exit == nullptr) {
      exit = After(NodeBuilder("Exit").Input(Output(v.choice, 0)).Output()).node;
    }
    const Output dy = outer_.Sum(exit);
    return dy.exists() ? dy : ZerosLike(ValueAround(exit));
  }
  /// A gradient that goes round the backward loop; output 1 of its choice is for the body.
  LoopVariable GradientRound(const Output& initial) const {
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

  /// Whether the node of this loop is of what makes it one, not of its body.
  bool Turns(const Node& node) const {
    if (node.is_next_iteration() || node.is_enter()) return true;
    if (LoopFrameOf(graph_, node) != loop_) return true;  // Exit
    return std::any_of(variables_.begin(), variables_.end(),
                       [&](const auto& v) { return &node == v.choice || &node == v.merge; });
  }

  Status PassBody(GradientFlow* body) {
    const ControlDependencies each({Output(backward_)});
    const int first = graph_.num_ids();
    std::vector<Node*> nodes;
    for (Node* node : nodes_) {
      const bool of_loop = LoopOf(graph_, *node) == loop_;
      if (!of_loop || !Turns(*node)) nodes.push_back(node);
    }
    TENON_RETURN_IF_ERROR(
        body->PassAll(order_, nodes, loop_, [&](const auto& loop, const auto& in) {
          return LoopGradient(loop, in, body, this).Build();
        }));
    // Nodes wait for the iteration through their inputs, unless these come from outside the loop.
    for (int id = first; id < graph_.num_ids(); ++id) {
      Node* const node = graph_.node(id);
      const bool inside =
          node != nullptr && std::any_of(node->inputs().begin(), node->inputs().end(),
                                         [&](const Endpoint& in) { return !in.node->is_enter(); });
      if (inside && !node->schema().Has(OpTrait::kPops)) graph_.RemoveControlEdge(backward_, node);
    }
    return graph_.error();
  }

  /// The gradient of what enters once, for all iterations: the sum of theirs, or all their rows.
  void AddUp(const Output& constant, const Gradient& dx) {
    if (!dx.exists()) return;
    const Endpoint x = constant.node->input(0);
    const Output whole = ValueAround(x);
    if (dx.is_sparse()) {
      const IndexedSlices& rows = dx.slices;
      const IndexedSlices none = NoRows(whole, rows.values.dtype(), rows.indices.dtype());
      const Output values = WithKnownShape(OfAllIterations(none.values, rows.values), whole);
      const Output indices = NodeBuilder("EnsureShape")
                                 .Input(OfAllIterations(none.indices, rows.indices))
                                 .Attr("shape", PartialShape{-1})
                                 .Output();
      outer_.Add(x, IndexedSlices{values, indices, none.dense_shape});
      return;
    }
    LoopVariable sum = GradientRound(ZerosOf(whole, dx.dtype()));
    const Output next = NodeBuilder("Add").Input(Output(sum.choice, 1)).Input(dx.dense).Output();
    outer_.Add(x, Leave(sum, next));
  }

  /// `none`, and after it `rows` of each iteration: the backward loop puts them into an array where
  /// its count is. `none` gives them their shape where there was no iteration.
  Output OfAllIterations(const Output& none, const Output& rows) {
    const ColocateWith beside(rows);
    const Output size = NodeBuilder("Add").Input(iterations_).Input(1).Output();
    Node* const array =
        NodeBuilder("TensorArrayV3").Input(size).Attr("dtype", none.dtype()).Finish();
    const Output handle(array, 0);
    const auto write = [](const Output& to, const Input& at, const Output& value,
                          const Output& flow) {
      return NodeBuilder("TensorArrayWriteV3")
          .Input(to)
          .Input(at)
          .Input(value)
          .Input(flow)
          .Output();
    };
    LoopVariable flow = GradientRound(write(handle, 0, none, Output(array, 1)));
    const Output inside = Enter(handle, frame_, true);
    const Output next = write(inside, Output(backward_), rows, Output(flow.choice, 1));
    Node* const all = NodeBuilder("TensorArrayConcatV3")
                          .Input(handle)
                          .Input(Leave(flow, next))
                          .Attr("dtype", none.dtype())
                          .Finish();
    return {all, 0};
  }

  /// What the loop's `value` was in the iteration that the backward loop is at.
  Output ValueOf(const Output& value) {
    const std::pair key(value.node, value.index);
    if (const auto found = values_.find(key); found != values_.end()) return found->second;
    if (!graph_.error().ok()) return Output();
    // What gradients wait for is no matter of the loop forward.
    const NoControlDependencies free;
    Node& node = *value.node;
    Output known;
    if (node.flow() == FlowKind::kConstantEnter) {
      known = Entered(ValueAround(node.input(0)));
    } else if (node.is_constant()) {
      const ControlDependencies each({Output(backward_)});
      known = NodeBuilder("Const")
                  .Attr("value", *node.attrs().Find("value"))
                  .Attr("dtype", *node.attrs().Find("dtype"))
                  .Output();
    } else if (node.flow() == FlowKind::kSwitch &&
               !node.input(1).node->schema().Has(OpTrait::kLoopCondition)) {
      known = Chosen(value);
    } else {
      known = Restored(value);
    }
    values_[key] = known;
    return known;
  }

  Output Entered(const Output& around) {
    const int begin = graph_.num_ids();
    return WithoutStack(begin, Enter(around, frame_, true));
  }

  /// What goes into a branch is known there when it is known before.
  Output Chosen(const Output& value) {
    const Output from = ValueOf(value.node->input(0)), predicate = ValueOf(value.node->input(1));
    const int begin = graph_.num_ids();
    return WithoutStack(begin, Guard::Choose(from, predicate, value.index == 1));
  }

  Output WithoutStack(int begin, const Output& result) {
    Restoration r;
    r.begin = begin;
    r.end = graph_.num_ids();
    r.result = result.node;
    restorations_.push_back(r);
    return result;
  }

  Output Restored(const Output& value) {
    const std::vector<Guard> guards = GuardsOf(branches_->Of(value));
    Restoration r;
    r.begin = graph_.num_ids();
    r.guards = guards;
    const ColocateWith beside(value);
    const Output stack = NodeBuilder("StackV2").Input(-1).Attr("elem_type", value.dtype()).Output();
    {
      const Output forward = IntoLoop(stack);
      const ControlDependencies in_order({Output(forward_)});
      r.push = NodeBuilder("StackPushV2").Input(forward).Input(value).Finish();
    }
    Output backward = IntoLoopBack(stack);
    for (const Guard& guard : guards) backward = guard.Backward(backward);
    const ControlDependencies each({Output(backward_)});
    r.pop = NodeBuilder("StackPopV2").Input(backward).Attr("elem_type", value.dtype()).Finish();
    r.result = r.pop;
    if (value.shape().IsFullyKnown()) {
      r.result =
          NodeBuilder("EnsureShape").Input(Output(r.pop)).Attr("shape", value.shape()).Finish();
    }
    r.end = graph_.num_ids();
    restorations_.push_back(r);
    return r.result;
  }

  /// A branch that a value is in: its predicate in an iteration forward, and in the same backward.
  struct Guard {
    Output forward, backward;
    bool taken;

    static Output Choose(const Output& value, const Output& predicate, bool side) {
      return {NodeBuilder("Switch").Input(value).Input(predicate).Finish(), side ? 1 : 0};
    }
    /// `value` of the loop back, where the branch was taken.
    Output Backward(const Output& value) const { return Choose(value, backward, taken); }
    /// A node that runs after `node` where the branch is taken, and also where it is not.
    Node* After(Node* node, const Output& predicate) const {
      const Output here = Choose(predicate, predicate, taken);
      const ControlDependencies wait({Output(node)});
      const Output done = NodeBuilder("Identity").Input(here).Output();
      const NoControlDependencies free;
      return NodeBuilder("Merge").Inputs({done, Output(here.node, taken ? 0 : 1)}).Finish();
    }
  };

  /// The branches that `branch` is in, and it: the outermost first.
  std::vector<Guard> GuardsOf(int branch) {
    std::vector<Guard> guards;
    for (; branch != LoopBranches::kNone; branch = (*branches_)[branch].around) {
      const LoopBranches::Branch at = (*branches_)[branch];
      guards.push_back({at.predicate, ValueOf(at.predicate), at.taken});
    }
    std::reverse(guards.begin(), guards.end());
    return guards;
  }

  /// `next` waits in each iteration for `node`, which runs where all branches are taken.
  void LetWait(Node* next, Node* node, const std::vector<Guard>& guards, Output Guard::*predicate) {
    for (auto guard = guards.rbegin(); guard != guards.rend() && graph_.error().ok(); ++guard) {
      node = guard->After(node, (*guard).*predicate);
    }
    if (graph_.error().ok()) graph_.AddControlEdge(node, next);
  }

  /// An iteration pushes and pops, and ends the loops in it, before the next one does. What
  /// gradient functions have asked for and not used goes.
  Status End() {
    const NoControlDependencies free;
    std::vector<Node*> unused;
    std::vector<bool> goes(graph_.num_ids(), false);
    // The last first: those before may be there for it.
    for (auto r = restorations_.rbegin(); r != restorations_.rend(); ++r) {
      const auto& uses = r->result->out_edges();
      if (std::all_of(uses.begin(), uses.end(), [&](const auto& e) { return goes[e.dst->id()]; })) {
        for (int id = r->begin; id < r->end; ++id) {
          unused.push_back(graph_.node(id));
          goes[id] = true;
        }
      }
    }
    for (const Restoration& r : restorations_) {
      if (goes[r.begin] || r.push == nullptr) continue;
      LetWait(next_, r.push, r.guards, &Guard::forward);
      LetWait(before_, r.pop, r.guards, &Guard::backward);
    }
    for (const Turn& turn : turns_) LetWait(before_, turn.end, turn.guards, &Guard::backward);
    graph_.RemoveNodes(unused);
    return graph_.error();
  }

  /// How a value of the loop forward comes into the loop back; by a stack where there is a push.
  struct Restoration {
    int begin = 0, end = 0;  // the ids of its nodes
    std::vector<Guard> guards;
    Node *push = nullptr, *pop = nullptr, *result = nullptr;
  };
  /// The end of a loop back within this one.
  struct Turn {
    Node* end;
    std::vector<Guard> guards;
  };

  Graph& graph_;
  const std::vector<Node*>& nodes_;
  GradientFlow& outer_;
  LoopGradient* const around_;
  const std::string loop_;  // the name of its frame
  std::vector<Node*> order_;
  std::optional<LoopBranches> branches_;
  std::vector<LoopVariable> variables_;
  std::vector<Output> constants_;
  Output condition_;
  LoopVariable counter_, down_;
  Output iterations_;                             // how many there were
  Node *forward_ = nullptr, *next_ = nullptr;     // the iteration, and the one after
  Node *backward_ = nullptr, *before_ = nullptr;  // the same of the loop back
  Output going_;                                  // its LoopCond
  std::string frame_;
  flat_hash_map<std::pair<Node*, int>, Output> values_;
  std::vector<Restoration> restorations_;
  std::vector<Turn> turns_;
};

}  // namespace

std::string LoopOf(Graph& graph, const Node& node) {
  const bool leaves = node.is_exit();
  return LoopFrameOf(graph, leaves ? *node.input(0).node : node);
}

Status PassWhileLoop(const std::string& loop, const std::vector<Node*>& nodes, GradientFlow* flow) {
  return LoopGradient(loop, nodes, flow, nullptr).Build();
}

}  // namespace tenon
