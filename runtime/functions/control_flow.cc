// SPDX-License-Identifier: Apache-2.0
#include "runtime/functions/control_flow.h"

namespace tenon {
namespace {

using Body = CallBuilder::Body;

DType TypeOf(Endpoint value) { return BaseType(value.node->output_type(value.index)); }

/// `condition` as a bool: numbers other than 0, texts and lists that are not empty are true.
StatusOr<Endpoint> AsBool(CallBuilder& builder, Endpoint condition) {
  const PartialShape& shape = condition.node->output_shape(condition.index);
  // Of unknown rank it is a scalar, or Switch says that it should have been.
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

/// The branches from number `first` on: the one that `index` is the number of, or the last.
StatusOr<Body> LowerBranches(CallBuilder& builder, const std::vector<FunctionName>& branches,
                             size_t first, Endpoint index, const std::vector<Endpoint>& arguments,
                             Node* start) {
  if (first + 1 == branches.size()) {
    return builder.AddBody(branches[first], arguments, start, StrCat("branch", first));
  }
  TENON_ASSIGN_OR_RETURN(Node * number,
                         builder.Add("number", "Const",
                                     {{"dtype", DType::kInt32},
                                      {"value", Tensor::Scalar(static_cast<int32_t>(first))}},
                                     {}, {index.node}));
  TENON_ASSIGN_OR_RETURN(
      Node * equal, builder.Add("equal", "Equal", {{"T", DType::kInt32}}, {index, {number, 0}}));
  std::vector<Endpoint> values = arguments;
  values.push_back(index);
  TENON_ASSIGN_OR_RETURN(Switched s, SwitchAll(builder, values, {equal, 0}));
  const Endpoint next_index = s.when_false.back();
  s.when_false.pop_back();
  s.when_true.pop_back();
  TENON_ASSIGN_OR_RETURN(const Body here, builder.AddBody(branches[first], s.when_true, s.if_true,
                                                          StrCat("branch", first)));
  TENON_ASSIGN_OR_RETURN(const Body others, LowerBranches(builder, branches, first + 1, next_index,
                                                          s.when_false, s.if_false));
  return MergeBodies(builder, s, others, here);
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
  return LowerBranches(builder, branches, 0, index, arguments, start);
}

StatusOr<Body> LowerWhile(CallBuilder& builder) {
  const Node& call = builder.call();
  Graph& graph = builder.graph();
  TENON_ASSIGN_OR_RETURN(const FunctionName cond, call.attrs().Get<FunctionName>("cond"));
  TENON_ASSIGN_OR_RETURN(const FunctionName body, call.attrs().Get<FunctionName>("body"));
  TENON_ASSIGN_OR_RETURN(const std::vector<Endpoint> initial, builder.Arguments());
  if (initial.empty()) return InvalidArgument("a While without loop variables has no end");
  const int64_t parallel_iterations = call.attrs().GetOr<int64_t>("parallel_iterations", 10);

  std::vector<Node*> merges;
  std::vector<Endpoint> variables;
  for (const Endpoint& value : initial) {
    const DType type = TypeOf(value);
    TENON_ASSIGN_OR_RETURN(Node * enter, builder.Add("enter", "Enter",
                                                     {{"T", type},
                                                      {"frame_name", call.name()},
                                                      {"parallel_iterations", parallel_iterations}},
                                                     {value}));
    // The second input becomes that of the next iteration.
    TENON_ASSIGN_OR_RETURN(Node * merge, builder.Add("variable", "Merge", {{"T", type}, {"N", 2}},
                                                     {{enter, 0}, {enter, 0}}));
    merges.push_back(merge);
    variables.push_back({merge, 0});
  }
  TENON_ASSIGN_OR_RETURN(Node * turn, builder.Add("iteration", "NoOp", {}, {}, {merges[0]}));
  TENON_ASSIGN_OR_RETURN(const Body test, builder.AddBody(cond, variables, turn, "cond"));
  if (test.results.size() != 1) {
    return InvalidArgument(
        "Expected a single scalar which can be converted to a boolean from the condition '",
        cond.name, "', got ", test.results.size(), " tensors.");
  }
  TENON_ASSIGN_OR_RETURN(const Endpoint truth, AsBool(builder, test.results[0]));
  TENON_ASSIGN_OR_RETURN(Node * goes_on,
                         builder.Add("goes_on", "LoopCond", {}, {truth}, test.effects));
  TENON_ASSIGN_OR_RETURN(const Switched s, SwitchAll(builder, variables, {goes_on, 0}));
  TENON_ASSIGN_OR_RETURN(const Body next, builder.AddBody(body, s.when_true, s.if_true, "body"));
  if (next.results.size() != variables.size()) {
    return InvalidArgument("While loop body returned ", next.results.size(),
                           " arguments. Expected: ", variables.size(), ", from '", body.name, "'");
  }
  Body result;
  for (size_t i = 0; i < variables.size(); ++i) {
    const DType type = TypeOf(variables[i]);
    if (TypeOf(next.results[i]) != type) {
      return InvalidArgument("its body '", body.name, "' makes a ", TypeOf(next.results[i]),
                             " of loop variable ", i, ", a ", type);
    }
    // What the body has done is over before the next iteration begins.
    TENON_ASSIGN_OR_RETURN(Node * back, builder.Add("next", "NextIteration", {{"T", type}},
                                                    {next.results[i]}, next.effects));
    TENON_RETURN_IF_ERROR(graph.Connect({back, 0}, merges[i], 1));
    TENON_ASSIGN_OR_RETURN(Node * exit,
                           builder.Add("exit", "Exit", {{"T", type}}, {s.when_false[i]}));
    result.results.push_back({exit, 0});
  }
  return result;
}

}  // namespace tenon
