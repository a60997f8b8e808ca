// SPDX-License-Identifier: Apache-2.0
#include "runtime/functions/control_flow.h"

namespace tenon {
namespace {

using Body = CallBuilder::Body;

DType TypeOf(Endpoint value) { return BaseType(value.node->output_type(value.index)); }

/// `condition` as a bool: numbers other than 0, texts and lists that are not empty are true.
StatusOr<Endpoint> AsBool(CallBuilder& builder, Endpoint condition) {
  const PartialShape& shape = condition.node->output_shape(condition.index);
  // A condition of unknown rank is a scalar, or Switch says that it should have been one.
  if (TypeOf(condition) == DType::kBool && shape.rank() <= 0) return condition;
  TENON_ASSIGN_OR_RETURN(
      Node * truth, builder.Add("condition", "ToBool", {{"T", TypeOf(condition)}}, {condition}));
  return Endpoint{truth, 0};
}

/// `values` where `condition` is false, and where it is true.
struct Switched {
  std::vector<Endpoint> when_false, when_true;
  /// Run where it is false, and where it is true.
  Node *if_false, *if_true;
};
StatusOr<Switched> SwitchAll(CallBuilder& builder, const std::vector<Endpoint>& values,
                             Endpoint condition) {
  Switched s;
  const auto add = [&](Endpoint value) {
    return builder.Add("switch", "Switch", {{"T", TypeOf(value)}}, {value, condition});
  };
  for (const Endpoint& value : values) {
    TENON_ASSIGN_OR_RETURN(Node * node, add(value));
    s.when_false.push_back({node, 0});
    s.when_true.push_back({node, 1});
  }
  TENON_ASSIGN_OR_RETURN(Node * pivot, add(condition));
  TENON_ASSIGN_OR_RETURN(const Endpoint no, builder.AddIdentity("if_false", {pivot, 0}));
  TENON_ASSIGN_OR_RETURN(const Endpoint yes, builder.AddIdentity("if_true", {pivot, 1}));
  s.if_false = no.node;
  s.if_true = yes.node;
  return s;
}

StatusOr<Endpoint> Merge(CallBuilder& builder, Endpoint a, Endpoint b) {
  TENON_ASSIGN_OR_RETURN(Node * node,
                         builder.Add("merge", "Merge", {{"T", TypeOf(a)}, {"N", 2}}, {a, b}));
  return Endpoint{node, 0};
}

/// Whichever of two bodies has run.
StatusOr<Body> MergeBodies(CallBuilder& builder, const Switched& s, const Body& if_false,
                           const Body& if_true) {
  if (if_false.results.size() != if_true.results.size()) {
    return InvalidArgument("its branches have ", if_true.results.size(), " and ",
                           if_false.results.size(), " results");
  }
  Body merged;
  for (size_t i = 0; i < if_true.results.size(); ++i) {
    const Endpoint &no = if_false.results[i], &yes = if_true.results[i];
    if (TypeOf(no) != TypeOf(yes)) {
      return InvalidArgument("result ", i, " of its branches is ", TypeOf(yes), " and ",
                             TypeOf(no));
    }
    // An Identity for each: a branch may hand on what comes from outside of it, which is never
    // dead.
    TENON_ASSIGN_OR_RETURN(const Endpoint a, builder.AddIdentity("result", no, {s.if_false}));
    TENON_ASSIGN_OR_RETURN(const Endpoint b, builder.AddIdentity("result", yes, {s.if_true}));
    TENON_ASSIGN_OR_RETURN(merged.results.emplace_back(), Merge(builder, a, b));
  }
  if (if_false.effects.empty() && if_true.effects.empty() && !merged.results.empty()) return merged;
  TENON_ASSIGN_OR_RETURN(const Endpoint a,
                         builder.AddIdentity("done", {s.if_false, 0}, if_false.effects));
  TENON_ASSIGN_OR_RETURN(const Endpoint b,
                         builder.AddIdentity("done", {s.if_true, 0}, if_true.effects));
  TENON_ASSIGN_OR_RETURN(const Endpoint done, Merge(builder, a, b));
  merged.effects.push_back(done.node);
  return merged;
}

/// The one of the branches that `index` is the number of, or the last: each is tested for where
/// those before it are not taken.
StatusOr<Body> LowerBranches(CallBuilder& builder, const std::vector<FunctionName>& branches,
                             Endpoint index, std::vector<Endpoint> arguments, Node* start) {
  std::vector<std::pair<Switched, Body>> tested;  // all but the last: there may be very many
  for (size_t i = 0; i + 1 < branches.size(); ++i) {
    const Tensor value = Tensor::Scalar(static_cast<int32_t>(i));
    TENON_ASSIGN_OR_RETURN(
        Node * number, builder.Add("number", "Const", {{"dtype", DType::kInt32}, {"value", value}},
                                   {}, {index.node}));
    TENON_ASSIGN_OR_RETURN(
        Node * equal, builder.Add("equal", "Equal", {{"T", DType::kInt32}}, {index, {number, 0}}));
    arguments.push_back(index);
    TENON_ASSIGN_OR_RETURN(Switched s, SwitchAll(builder, arguments, {equal, 0}));
    index = s.when_false.back();
    s.when_false.pop_back();
    s.when_true.pop_back();
    arguments = std::move(s.when_false);
    TENON_ASSIGN_OR_RETURN(
        Body here, builder.AddBody(branches[i], s.when_true, s.if_true, StrCat("branch", i)));
    start = s.if_false;
    s.when_true.clear();
    tested.emplace_back(std::move(s), std::move(here));
  }
  TENON_ASSIGN_OR_RETURN(Body body, builder.AddBody(branches.back(), arguments, start,
                                                    StrCat("branch", branches.size() - 1)));
  for (; !tested.empty(); tested.pop_back()) {
    const auto& [s, here] = tested.back();
    TENON_ASSIGN_OR_RETURN(body, MergeBodies(builder, s, body, here));
  }
  return body;
}

/// A loop of the executor that takes the place of a call.
class Loop {
 public:
  explicit Loop(CallBuilder& builder)
      : builder_(builder),
        parallel_iterations_(builder.call().attrs().GetOr<int64_t>("parallel_iterations", 10)) {}

  /// Brings in the values that the loop variables begin with. There must be one.
  Status Begin(const std::vector<Endpoint>& initial) {
    for (const Endpoint& value : initial) {
      TENON_ASSIGN_OR_RETURN(Node * enter, Enter(value, false));
      // The second input becomes that of the next iteration.
      TENON_ASSIGN_OR_RETURN(Node * merge,
                             builder_.Add("variable", "Merge", {{"T", TypeOf(value)}, {"N", 2}},
                                          {{enter, 0}, {enter, 0}}));
      merges_.push_back(merge);
      variables_.push_back({merge, 0});
    }
    TENON_ASSIGN_OR_RETURN(turn_, builder_.Add("iteration", "NoOp", {}, {}, {merges_[0]}));
    return OkStatus();
  }
  /// `value`, which comes from outside, as every iteration sees it.
  StatusOr<Endpoint> BringIn(Endpoint value) {
    TENON_ASSIGN_OR_RETURN(Node * enter, Enter(value, true));
    return Endpoint{enter, 0};
  }

  /// What the variables are in an iteration, and a node that runs in each.
  const std::vector<Endpoint>& variables() const { return variables_; }
  Node* turn() const { return turn_; }

  /// The variables where the loop ends, and where it goes on because `truth` holds.
  StatusOr<Switched> Test(Endpoint truth, const std::vector<Node*>& after) {
    TENON_ASSIGN_OR_RETURN(Node * goes_on, builder_.Add("goes_on", "LoopCond", {}, {truth}, after));
    return SwitchAll(builder_, variables_, {goes_on, 0});
  }

  /// Closes the loop: `next` has the variables of the next iteration, by function `body`. The last
  /// values.
  StatusOr<Body> End(const Switched& s, const Body& next, std::string_view body) {
    if (next.results.size() != variables_.size()) {
      return InvalidArgument("While loop body returned ", next.results.size(),
                             " arguments. Expected: ", variables_.size(), ", from '", body, "'");
    }
    Body result;
    for (size_t i = 0; i < variables_.size(); ++i) {
      const DType type = TypeOf(variables_[i]);
      if (TypeOf(next.results[i]) != type) {
        return InvalidArgument("its body '", body, "' makes a ", TypeOf(next.results[i]),
                               " of loop variable ", i, ", a ", type);
      }
      // What the body has done is over before the next iteration begins.
      TENON_ASSIGN_OR_RETURN(Node * back, builder_.Add("next", "NextIteration", {{"T", type}},
                                                       {next.results[i]}, next.effects));
      TENON_RETURN_IF_ERROR(builder_.graph().Connect({back, 0}, merges_[i], 1));
      TENON_ASSIGN_OR_RETURN(Node * exit,
                             builder_.Add("exit", "Exit", {{"T", type}}, {s.when_false[i]}));
      result.results.push_back({exit, 0});
    }
    return result;
  }

 private:
  StatusOr<Node*> Enter(Endpoint value, bool is_constant) {
    return builder_.Add("enter", "Enter",
                        {{"T", TypeOf(value)},
                         {"frame_name", builder_.call().name()},
                         {"is_constant", is_constant},
                         {"parallel_iterations", parallel_iterations_}},
                        {value});
  }

  CallBuilder& builder_;
  const int64_t parallel_iterations_;
  std::vector<Node*> merges_;
  std::vector<Endpoint> variables_;
  Node* turn_ = nullptr;
};

/// A scalar that is there once `after`, which may be null, has run.
StatusOr<Endpoint> AddConstant(CallBuilder& builder, const Tensor& value, Node* after) {
  std::vector<Node*> before;
  if (after != nullptr) before.push_back(after);
  TENON_ASSIGN_OR_RETURN(
      Node * node,
      builder.Add("constant", "Const", {{"dtype", value.dtype()}, {"value", value}}, {}, before));
  return Endpoint{node, 0};
}

/// The numbers that a For counts: `count` of them, from `start` on in steps of `delta`.
struct Numbers {
  Endpoint start, delta, count;
};

/// The numbers that the first three arguments stand for: start, limit and delta. The step fails
/// when these are no scalars or lead away from the limit.
StatusOr<Numbers> NumbersOf(CallBuilder& builder, const std::vector<Endpoint>& arguments) {
  TENON_ASSIGN_OR_RETURN(Node * start_node, builder.Start());
  Endpoint scalars[3], wide[3];
  const char* const names[] = {"start_number", "limit", "delta"};
  for (int i = 0; i < 3; ++i) {
    TENON_ASSIGN_OR_RETURN(
        Node * scalar,
        builder.Add(names[i], "EnsureShape",
                    {{"T", DType::kInt32}, {"shape", PartialShape(Shape())}}, {arguments[i]}));
    // Differences of int32 need not fit into it.
    TENON_ASSIGN_OR_RETURN(
        Node * cast,
        builder.Add(names[i], "Cast", {{"SrcT", DType::kInt32}, {"DstT", DType::kInt64}},
                    {{scalar, 0}}));
    scalars[i] = {scalar, 0};
    wide[i] = {cast, 0};
  }
  const auto [start, limit, delta] = wide;
  const auto add = [&](std::string_view name, std::string_view op, DType type,
                       const std::vector<Endpoint>& inputs) -> StatusOr<Endpoint> {
    TENON_ASSIGN_OR_RETURN(Node * node, builder.Add(name, op, {{"T", type}}, inputs));
    return Endpoint{node, 0};
  };
  TENON_ASSIGN_OR_RETURN(const Endpoint zero,
                         AddConstant(builder, Tensor::Scalar<int64_t>(0), start_node));
  TENON_ASSIGN_OR_RETURN(const Endpoint one,
                         AddConstant(builder, Tensor::Scalar<int64_t>(1), start_node));
  TENON_ASSIGN_OR_RETURN(const Endpoint way, add("way", "Sub", DType::kInt64, {limit, start}));
  TENON_ASSIGN_OR_RETURN(const Endpoint way_sign, add("sign", "Sign", DType::kInt64, {way}));
  TENON_ASSIGN_OR_RETURN(const Endpoint step_sign, add("sign", "Sign", DType::kInt64, {delta}));
  // A way of no length is right with any step, another one with those of its direction.
  TENON_ASSIGN_OR_RETURN(const Endpoint same,
                         add("right", "Equal", DType::kInt64, {way_sign, step_sign}));
  TENON_ASSIGN_OR_RETURN(const Endpoint none, add("right", "Equal", DType::kInt64, {way, zero}));
  TENON_ASSIGN_OR_RETURN(Node * right, builder.Add("right", "LogicalOr", {}, {same, none}));
  TENON_ASSIGN_OR_RETURN(Node * text,
                         builder.Add("message", "Const",
                                     {{"dtype", DType::kString},
                                      {"value", Tensor::Scalar("Invalid start/limit/delta")}},
                                     {}, {start_node}));
  TENON_ASSIGN_OR_RETURN(
      Node * check,
      builder.Add("check", "Assert",
                  {{"T", DTypeVector{DType::kString, DType::kInt64, DType::kInt64, DType::kInt64}}},
                  {{right, 0}, {text, 0}, start, limit, delta}));
  // -floor(-way / delta) rounds up; without a way any delta will do.
  TENON_ASSIGN_OR_RETURN(const Endpoint stands,
                         add("stands", "Equal", DType::kInt64, {delta, zero}));
  TENON_ASSIGN_OR_RETURN(const Endpoint step,
                         add("step", "SelectV2", DType::kInt64, {stands, one, delta}));
  TENON_ASSIGN_OR_RETURN(const Endpoint back, add("back", "Sub", DType::kInt64, {start, limit}));
  TENON_ASSIGN_OR_RETURN(const Endpoint quotient,
                         add("quotient", "FloorDiv", DType::kInt64, {back, step}));
  TENON_ASSIGN_OR_RETURN(const Endpoint count, add("count", "Neg", DType::kInt64, {quotient}));
  TENON_ASSIGN_OR_RETURN(const Endpoint checked, builder.AddIdentity("count", count, {check}));
  return Numbers{scalars[0], scalars[2], checked};
}

/// The arguments of the call after its first one, which is taken out of them.
StatusOr<Endpoint> TakeFirst(CallBuilder& builder, std::vector<Endpoint>* arguments) {
  TENON_ASSIGN_OR_RETURN(*arguments, builder.Arguments());
  const Endpoint first = arguments->front();
  arguments->erase(arguments->begin());
  return first;
}

}  // namespace

StatusOr<Body> LowerIf(CallBuilder& builder) {
  const AttributeMap& attrs = builder.call().attrs();
  TENON_ASSIGN_OR_RETURN(const FunctionName then_branch, attrs.Get<FunctionName>("then_branch"));
  TENON_ASSIGN_OR_RETURN(const FunctionName else_branch, attrs.Get<FunctionName>("else_branch"));
  std::vector<Endpoint> arguments;
  TENON_ASSIGN_OR_RETURN(Endpoint condition, TakeFirst(builder, &arguments));
  TENON_ASSIGN_OR_RETURN(condition, AsBool(builder, condition));
  TENON_ASSIGN_OR_RETURN(const Switched s, SwitchAll(builder, arguments, condition));
  TENON_ASSIGN_OR_RETURN(const Body no,
                         builder.AddBody(else_branch, s.when_false, s.if_false, "else"));
  TENON_ASSIGN_OR_RETURN(const Body yes,
                         builder.AddBody(then_branch, s.when_true, s.if_true, "then"));
  return MergeBodies(builder, s, no, yes);
}

StatusOr<Body> LowerCase(CallBuilder& builder) {
  TENON_ASSIGN_OR_RETURN(const std::vector<FunctionName> branches,
                         builder.call().attrs().Get<std::vector<FunctionName>>("branches"));
  std::vector<Endpoint> arguments;
  TENON_ASSIGN_OR_RETURN(const Endpoint index, TakeFirst(builder, &arguments));
  TENON_ASSIGN_OR_RETURN(Node * start, builder.Start());
  return LowerBranches(builder, branches, index, std::move(arguments), start);
}

StatusOr<Body> LowerWhile(CallBuilder& builder) {
  const AttributeMap& attrs = builder.call().attrs();
  TENON_ASSIGN_OR_RETURN(const FunctionName cond, attrs.Get<FunctionName>("cond"));
  TENON_ASSIGN_OR_RETURN(const FunctionName body, attrs.Get<FunctionName>("body"));
  TENON_ASSIGN_OR_RETURN(const std::vector<Endpoint> initial, builder.Arguments());
  if (initial.empty()) return InvalidArgument("a While without loop variables has no end");
  Loop loop(builder);
  TENON_RETURN_IF_ERROR(loop.Begin(initial));
  TENON_ASSIGN_OR_RETURN(const Body test,
                         builder.AddBody(cond, loop.variables(), loop.turn(), "cond"));
  if (test.results.size() != 1) {
    return InvalidArgument(
        "Expected a single scalar which can be converted to a boolean from the condition '",
        cond.name, "', got ", test.results.size(), " tensors.");
  }
  TENON_ASSIGN_OR_RETURN(const Endpoint truth, AsBool(builder, test.results[0]));
  TENON_ASSIGN_OR_RETURN(const Switched s, loop.Test(truth, test.effects));
  TENON_ASSIGN_OR_RETURN(const Body next, builder.AddBody(body, s.when_true, s.if_true, "body"));
  return loop.End(s, next, body.name);
}

StatusOr<Body> LowerFor(CallBuilder& builder) {
  TENON_ASSIGN_OR_RETURN(const FunctionName body, builder.call().attrs().Get<FunctionName>("body"));
  TENON_ASSIGN_OR_RETURN(std::vector<Endpoint> arguments, builder.Arguments());
  TENON_ASSIGN_OR_RETURN(const Numbers numbers, NumbersOf(builder, arguments));
  // The number and how many are left take the place of start, limit and delta.
  arguments.erase(arguments.begin());
  arguments[0] = numbers.start;
  arguments[1] = numbers.count;
  Loop loop(builder);
  TENON_RETURN_IF_ERROR(loop.Begin(arguments));
  TENON_ASSIGN_OR_RETURN(const Endpoint delta, loop.BringIn(numbers.delta));
  const auto constant = [&](int64_t value, Node* after) {
    return AddConstant(builder, Tensor::Scalar(value), after);
  };
  TENON_ASSIGN_OR_RETURN(const Endpoint zero, constant(0, loop.turn()));
  TENON_ASSIGN_OR_RETURN(Node * more, builder.Add("more", "Greater", {{"T", DType::kInt64}},
                                                  {loop.variables()[1], zero}));
  TENON_ASSIGN_OR_RETURN(const Switched s, loop.Test({more, 0}, {}));
  std::vector<Endpoint> inputs = s.when_true;
  inputs.erase(inputs.begin() + 1);
  TENON_ASSIGN_OR_RETURN(Body next, builder.AddBody(body, inputs, s.if_true, "body"));
  if (next.results.size() != arguments.size() - 2) {
    return InvalidArgument("For loop body returned ", next.results.size(),
                           " arguments. Expected: ", arguments.size() - 2, ", from '", body.name,
                           "'");
  }
  TENON_ASSIGN_OR_RETURN(const Endpoint one, constant(1, s.if_true));
  TENON_ASSIGN_OR_RETURN(Node * number, builder.Add("number", "AddV2", {{"T", DType::kInt32}},
                                                    {s.when_true[0], delta}));
  TENON_ASSIGN_OR_RETURN(Node * left,
                         builder.Add("left", "Sub", {{"T", DType::kInt64}}, {s.when_true[1], one}));
  next.results.insert(next.results.begin(), {{number, 0}, {left, 0}});
  TENON_ASSIGN_OR_RETURN(Body result, loop.End(s, next, body.name));
  // Without values of its own the loop is over when the number is the last one.
  result.effects.push_back(result.results[0].node);
  result.results.erase(result.results.begin(), result.results.begin() + 2);
  return result;
}

}  // namespace tenon
