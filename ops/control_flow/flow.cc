// SPDX-License-Identifier: Apache-2.0
#include "ops/control_flow/flow.h"

#include "core/base/hash_map.h"
#include "ops/array/array_basic_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/control_flow/flow_scope.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"

namespace tenon {
namespace {

/// What branches and bodies have in common: what is inside, and what has been brought in.
class Inside : public FlowContext {
 public:
  Endpoint Bring(Endpoint value) final {
    if (nodes_.contains(value.node)) return value;
    const std::pair key(value.node, value.index);
    if (const auto found = brought_.find(key); found != brought_.end()) return found->second;
    // The entrance is outside: in what is around this, which brings the value there first.
    const InFlow around(around_);
    const Endpoint inside = Enter(value.node->num_outputs() > 0 ? Output(value) : After(value));
    brought_[key] = inside;
    nodes_.insert(inside.node);
    return inside;
  }
  void Add(Node* node) final {
    nodes_.insert(node);
    if (around_ != nullptr) around_->Add(node);
  }
  Node* pivot() const final { return pivot_; }

 protected:
  explicit Inside(FlowContext* around) : around_(around) {}
  virtual Endpoint Enter(const Output& value) = 0;

  /// A value that is there when a node without outputs has run.
  static Output After(const Output& node) {
    const ControlDependencies after({node});
    return Const(true, {.name = "after"});
  }
  static bool IsReference(const Output& value) {
    return value.exists() && IsRef(value.node->output_type(value.index));
  }

  FlowContext* const around_;
  Node* pivot_ = nullptr;

 private:
  flat_hash_set<const Node*> nodes_;
  flat_hash_map<std::pair<Node*, int>, Endpoint> brought_;
};

class InBranch final : public Inside {
 public:
  InBranch(FlowContext* around, Output predicate, bool taken)
      : Inside(around), predicate_(predicate), taken_(taken) {
    const Output pivot = Side(predicate);
    const Output here = Identity(pivot, {.name = taken ? "switch_t" : "switch_f"});
    if (!here.exists()) return;
    pivot_ = here.node;
    Add(pivot_);
  }

 private:
  Endpoint Enter(const Output& value) override {
    // Beside the value, so that what is not wanted does not travel.
    const ColocateWith beside(value);
    return Side(value);
  }
  Output Side(const Output& value) const {
    const std::string_view op = IsReference(value) ? "RefSwitch" : "Switch";
    return {NodeBuilder(op, "Switch").Input(value).Input(predicate_).Finish(), taken_ ? 1 : 0};
  }

  const Output predicate_;
  const bool taken_;
};

class InBody final : public Inside {
 public:
  InBody(FlowContext* around, std::string frame, int parallel_iterations)
      : Inside(around), frame_(std::move(frame)), parallel_iterations_(parallel_iterations) {}

  void set_pivot(Node* node) { pivot_ = node; }
  Output EnterAs(const Output& value, bool is_constant) const {
    return NodeBuilder(IsReference(value) ? "RefEnter" : "Enter", "Enter")
        .Input(value)
        .Attr("frame_name", frame_)
        .Attr("is_constant", is_constant)
        .Attr("parallel_iterations", int64_t{parallel_iterations_})
        .Output();
  }

 private:
  Endpoint Enter(const Output& value) override { return EnterAs(value, true); }

  const std::string frame_;
  const int parallel_iterations_;
};

/// What a branch gave, as nodes of its own; of a node without outputs, a truth value after it.
std::vector<Output> Build(Inside* inside, const Branch& build) {
  const InFlow in(inside);
  std::vector<Output> values;
  for (const Output& value : build()) {
    const bool is_node = value.node != nullptr && value.node->num_outputs() == 0;
    const ControlDependencies after(is_node ? std::vector<Output>{value} : std::vector<Output>{});
    values.push_back(Identity(is_node ? Output(inside->pivot()) : value));
  }
  return values;
}

bool IsBoolScalar(const Output& value) {
  return value.dtype() == DType::kBool &&
         (!value.shape().rank_known() || value.shape().rank() == 0);
}

bool IsWithin(const PartialShape& shape, const PartialShape& wanted) {
  return shape.RelaxedWith(wanted) == wanted;
}

}  // namespace

std::vector<Output> Cond(const Output& predicate, const Branch& on_true, const Branch& on_false,
                         const OpOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const FlowScope scope(options.name);
  if (predicate.exists() && !IsBoolScalar(predicate)) {
    context.Fail(
        InvalidArgument("the predicate of a Cond must be a bool scalar, '", predicate.name(),
                        "' is ", ToString(predicate.dtype()), predicate.shape().ToString()),
        options.location);
    return {};
  }
  const Output chosen = Identity(predicate, {.name = "pred_id"});
  InBranch yes(context.flow, chosen, true), no(context.flow, chosen, false);
  if (!context.graph->error().ok()) return {};
  const std::vector<Output> when_true = Build(&yes, on_true);
  const std::vector<Output> when_false = Build(&no, on_false);
  if (!context.graph->error().ok()) return std::vector<Output>(when_true.size());
  if (when_true.size() != when_false.size()) {
    context.Fail(InvalidArgument("the branches of a Cond give ", when_true.size(), " and ",
                                 when_false.size(), " values"),
                 options.location);
    return std::vector<Output>(when_true.size());
  }
  std::vector<Output> results;
  for (size_t i = 0; i < when_true.size(); ++i) {
    if (when_true[i].dtype() != when_false[i].dtype()) {
      context.Fail(
          InvalidArgument("value ", i, " of a Cond is ", ToString(when_true[i].dtype()),
                          " in one branch, ", ToString(when_false[i].dtype()), " in the other"),
          options.location);
    }
    results.push_back(Merge({when_false[i], when_true[i]}).output);
  }
  return results;
}

Output Cond(const Output& predicate, const std::function<Output()>& on_true,
            const std::function<Output()>& on_false, const OpOptions& options) {
  const auto one = [](const std::function<Output()>& branch) {
    return [&branch] { return std::vector<Output>{branch()}; };
  };
  const std::vector<Output> result =
      Cond(predicate, Branch(one(on_true)), Branch(one(on_false)), options);
  return result.empty() ? Output() : result[0];
}

Output Case(const std::vector<std::pair<Output, std::function<Output()>>>& branches,
            const std::function<Output()>& otherwise, const OpOptions& options) {
  const CalledFrom caller(options.location);
  const FlowScope scope(options.name);
  std::function<Output()> rest = otherwise;
  for (auto branch = branches.rbegin(); branch != branches.rend(); ++branch) {
    rest = [branch, rest] { return Cond(branch->first, branch->second, rest); };
  }
  return rest();
}

std::vector<Output> WhileLoop(
    const Inputs& initial, const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const std::vector<Output>&)>& body,
    const WhileLoopOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  Graph& graph = *context.graph;
  const auto fail = [&](const Status& s) { context.Fail(s, options.location); };
  const FlowScope scope(options.name);
  std::vector<Output> values;
  for (const Input& value : initial.values()) values.push_back(Const(value));
  const size_t given = values.size();
  if (options.maximum_iterations >= 0) {
    values.push_back(Const(int64_t{0}, {.dtype = DType::kInt64}));
  }
  if (options.parallel_iterations < 1) {
    fail(InvalidArgument("parallel_iterations of a while loop must be at least 1, found ",
                         options.parallel_iterations));
  }
  if (given == 0) fail(InvalidArgument("a while loop needs a value that goes round"));
  if (!options.shape_invariants.empty() && options.shape_invariants.size() != given) {
    fail(InvalidArgument("found ", options.shape_invariants.size(), " shape_invariants for ", given,
                         " values of a while loop"));
  }
  if (!graph.error().ok()) return std::vector<Output>(given);

  // Names of frames need to be unique in the graph.
  InBody inside(context.flow, CurrentBuilding().prefix + "while_context",
                options.parallel_iterations);
  std::vector<Output> merged;
  std::vector<PartialShape> shapes;
  for (size_t i = 0; i < values.size(); ++i) {
    const Output enter = inside.EnterAs(values[i], false);
    const bool has_invariant = i < options.shape_invariants.size();
    shapes.push_back(has_invariant ? options.shape_invariants[i] : values[i].shape());
    if (!graph.error().ok()) return std::vector<Output>(given);
    if (has_invariant && !IsWithin(values[i].shape(), shapes[i])) {
      fail(InvalidArgument("the initial value ", i, " of a while loop has shape ",
                           values[i].shape().ToString(), ", its invariant is ",
                           shapes[i].ToString()));
      return std::vector<Output>(given);
    }
    inside.Add(enter.node);
    const InFlow in(&inside);
    // The second input becomes the back edge.
    merged.push_back(Merge({enter, enter}).output);
    if (!graph.error().ok()) return std::vector<Output>(given);
    graph.RelaxShape(merged.back(), shapes[i]);
  }
  inside.set_pivot(merged[0].node);

  std::vector<Output> exits, next;
  {
    const InFlow in(&inside);
    const std::vector<Output> present(merged.begin(), merged.begin() + given);
    Output more = condition(present);
    if (more.exists() && !IsBoolScalar(more)) {
      fail(InvalidArgument("the condition of a while loop must be a bool scalar, '", more.name(),
                           "' is ", ToString(more.dtype()), more.shape().ToString()));
      return std::vector<Output>(given);
    }
    if (given < merged.size()) {
      more = LogicalAnd(merged[given] < Input(options.maximum_iterations), more);
    }
    const Output going = LoopCond(more);
    std::vector<Output> stays;
    std::vector<Output> leaves;
    for (const Output& m : merged) {
      const ColocateWith beside(m);
      const auto [left, stayed] = Switch(m, going);
      leaves.push_back(left);
      stays.push_back(Identity(stayed));
    }
    if (!graph.error().ok()) return std::vector<Output>(given);
    inside.set_pivot(stays[0].node);
    next = body({stays.begin(), stays.begin() + given});
    if (given < merged.size()) next.push_back(stays[given] + 1);
    if (!graph.error().ok()) return std::vector<Output>(given);
    if (next.size() != merged.size()) {
      fail(InvalidArgument("the body of a while loop gives ", next.size() - (merged.size() - given),
                           " values, it is given ", given));
      return std::vector<Output>(given);
    }
    for (size_t i = 0; i < merged.size(); ++i) {
      const bool other_type = next[i].dtype() != merged[i].dtype();
      if (other_type || !IsWithin(next[i].shape(), shapes[i])) {
        fail(InvalidArgument(
            "value ", i, " of a while loop is ", ToString(merged[i].dtype()), shapes[i].ToString(),
            " before the body and ", ToString(next[i].dtype()), next[i].shape().ToString(),
            " after it", other_type ? "" : "; a shape that changes is said by shape_invariants"));
        return std::vector<Output>(given);
      }
      const Output back = NextIteration(Identity(next[i]));
      if (!graph.error().ok()) return std::vector<Output>(given);
      if (Status s = graph.Connect(back, merged[i].node, 1); !s.ok()) fail(s);
    }
    next = leaves;
  }
  for (size_t i = 0; i < given; ++i) exits.push_back(Exit(next[i]));
  return exits;
}

}  // namespace tenon
