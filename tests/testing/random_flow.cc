// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/random_flow.h"

#include <functional>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/control_flow_ops.h"
#include "ops/math/math_ops.h"
#include "ops/state/state_ops.h"

namespace tenon::testing {
namespace {

/// `context` in the name scope `name`.
BuildContext Named(const BuildContext& context, const std::string& name) {
  const Entered outside(context);
  const NameScope scope(name);
  return CurrentBuilding();
}

/// A constant that is made in `context`.
Output ConstIn(const BuildContext& context, int32_t value) {
  const Entered inside(context);
  return Const(value);
}

/// A loop of which every node is in what is current where it is made, with nothing added: `body`
/// and `condition` enter themselves what they read from outside.
std::vector<Output> LoopByHand(
    const std::string& frame, const std::vector<Output>& initial,
    const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const std::vector<Output>&)>& body,
    int parallel_iterations) {
  const NameScope scope(frame);
  std::vector<Output> merged, exits, inside;
  for (const Output& value : initial) {
    const Output enter = Enter(value, frame, {.parallel_iterations = parallel_iterations});
    // The second input becomes the back edge.
    merged.push_back(Merge({enter, enter}).output);
  }
  const Output predicate = LoopCond(condition(merged));
  for (const Output& m : merged) {
    const auto [leaves, stays] = Switch(m, predicate);
    exits.push_back(Exit(leaves));
    inside.push_back(Identity(stays));
  }
  const std::vector<Output> next = body(inside);
  Graph& graph = *CurrentBuilding().graph;
  for (size_t i = 0; i < next.size(); ++i) {
    const Output back = NextIteration(next[i]);
    if (!graph.error().ok()) return {};
    if (const Status s = graph.Connect(back, merged[i].node, 1); !s.ok()) graph.Fail(s);
  }
  return exits;
}

/// What is current, after `node`.
BuildContext After(const Output& node) {
  const ControlDependencies after({node});
  return CurrentBuilding();
}

}  // namespace

void RandomFlow::AddVariables(int count) {
  static const std::vector<DType> types = {DType::kFloat, DType::kDouble, DType::kInt64};
  for (int i = 0; i < count; ++i) {
    Variable v;
    v.dtype = r_.OneOf(types);
    v.shape = r_.Chance(30) ? Shape() : Shape{1 + r_.Below(3), 1 + r_.Below(4)};
    v.is_ref = r_.Chance(50);
    const std::string name = StrCat(label_, "_v", i);
    v.handle = v.is_ref ? VariableV2(v.shape, v.dtype, {.name = name})
                        : VarHandleOp(v.dtype, v.shape, {.name = name});
    const Output initial = Const(RandomTensor(r_, v.dtype, v.shape));
    initializers_.push_back(v.is_ref ? Assign(v.handle, initial)
                                     : Output(AssignVariableOp(v.handle, initial)));
    variables_.push_back(v);
    top_.Keep(Read(variables_.back()));
  }
}

void RandomFlow::Finish() {
  const ControlDependencies after(initializers_);
  initializer_ = NoOp({.name = "init"});
}

void RandomFlow::Used(Variable& v, Node* node) {
  v.uses.push_back(Output(node));
  state_.insert(node);
}

Output RandomFlow::Read(Variable& v) {
  const ControlDependencies after(v.uses);
  // A value read from a reference is copied before the next update, which it would show. The copy
  // is beside the reference or not, and made through ops that hand the variable's memory on, or
  // not.
  Output value;
  if (v.is_ref && r_.Chance(50)) {
    const ColocateWith beside(v.handle);
    Output read = Identity(v.handle);
    if (r_.Chance(50)) read = Reshape(ExpandDims(read, 0), ShapeOf(v.handle));
    value = Snapshot(read);
  } else if (v.is_ref) {
    value = Snapshot(v.handle);
  } else {
    value = ReadVariableOp(v.handle, v.dtype);
  }
  if (value.exists()) Used(v, value.node);
  return value;
}

Node* RandomFlow::Update(const Variable& v, Output value) {
  const ControlDependencies after(v.uses);
  const int kind = r_.Below(3);
  if (v.is_ref) {
    if (kind == 0) return AssignAdd(v.handle, value).node;
    if (kind == 1) return AssignSub(v.handle, value).node;
    return Assign(v.handle, value).node;
  }
  if (kind == 0) return AssignAddVariableOp(v.handle, value);
  if (kind == 1) return AssignSubVariableOp(v.handle, value);
  return AssignVariableOp(v.handle, value);
}

Output RandomFlow::ValueFor(const Variable& v) {
  const Output start = Const(RandomTensor(r_, v.dtype, v.shape));
  return top_.Absorb(start, top_.Any());
}

void RandomFlow::UseVariable() {
  if (variables_.empty()) return top_.Grow();
  Variable& v = variables_[r_.Below(static_cast<int>(variables_.size()))];
  if (r_.Chance(40)) return top_.Keep(Read(v));
  const Output value = ValueFor(v);
  if (!ok()) return;
  if (r_.Chance(25)) {
    // An update that runs in one branch only.
    const auto [kept, taken] = Switch(value, top_.Predicate());
    Node* update = Update(v, taken);
    const Output changed = [&] {
      const ControlDependencies after({update});
      return Identity(taken);
    }();
    const Output merged = Merge({kept, changed}).output;
    if (!ok()) return;
    // The other branch does not wait for the earlier uses, so they are kept.
    state_.insert(update);
    Used(v, merged.node);
    return top_.Keep(merged);
  }
  Node* update = Update(v, value);
  if (!ok()) return;
  v.uses.clear();
  Used(v, update);
  updates_.push_back(update);
  if (r_.Chance(60)) top_.Keep(Read(v));
}

std::vector<Output> RandomFlow::Branch(const Place& inside, Random& r,
                                       const std::vector<Output>& values, int depth) {
  RandomOps ops(inside.constants, r, values);
  for (int i = r.Below(4); i > 0; --i) ops.Grow();
  if (depth < 2 && r.Chance(20)) {
    for (const Output& o : Cond(inside, r, ops.Predicate(), {ops.Any()}, depth + 1)) ops.Keep(o);
  }
  std::vector<Output> results;
  for (const Output& v : values) {
    results.push_back(r.Chance(80) ? ops.Absorb(v, ops.values().back()) : v);
  }
  return results;
}

std::vector<Output> RandomFlow::Cond(const Place& outside, Random& r, Output predicate,
                                     const std::vector<Output>& values, int depth) {
  std::vector<std::vector<Output>> sides(2), results(2);
  for (const Output& v : values) {
    const auto [when_false, when_true] = Switch(v, predicate);
    if (!ok()) return {};
    sides[0].push_back(when_false);
    sides[1].push_back(when_true);
  }
  for (int side = 0; side < 2; ++side) {
    const Output pivot = Identity(sides[side][0]);
    const Place inside{After(pivot), outside.loops};
    results[side] = Branch(inside, r, sides[side], depth);
  }
  if (!ok()) return {};
  std::vector<Output> merged;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto [value, which] = Merge({results[0][i], results[1][i]});
    if (!ok()) return {};
    merged.push_back(value);
    if (i == 0 && r.Chance(30)) merged.push_back(which);
  }
  return merged;
}

void RandomFlow::AddCond() {
  std::vector<Output> values = {top_.Any()};
  if (r_.Chance(50)) values.push_back(top_.Any());
  for (const Output& v : Cond(Here(), r_, top_.Predicate(), values, 0)) top_.Keep(v);
  if (dead_value_.empty() && ok()) {
    const Output never = Const(false);
    dead_value_ = Identity(Switch(values[0], never).output_true).name();
  }
}

std::vector<Output> RandomFlow::Body(const Place& inside, Random& r, const std::string& name,
                                     Output counter, const std::vector<Output>& values,
                                     const std::vector<Output>& captured, int depth) {
  std::vector<Output> known = values;
  known.push_back(counter);
  known.insert(known.end(), captured.begin(), captured.end());
  RandomOps ops(inside.constants, r, known);
  for (int i = r.Below(4); i > 0; --i) ops.Grow();
  if (r.Chance(25)) {
    for (const Output& o : Cond(inside, r, ops.Predicate(), {ops.Any()}, 1)) ops.Keep(o);
  }
  if (depth < 1 && r.Chance(25)) {
    const int times = r.Below(4);
    const Output more = r.OneOf(known);
    for (const Output& o : Loop(inside, r, name + "_in", {ops.Any()}, {more}, times, depth + 1)) {
      ops.Keep(o);
    }
  }
  std::vector<Output> next;
  for (const Output& v : values) {
    next.push_back(ops.Absorb(v, ops.values().back()));
  }
  return next;
}

std::vector<Output> RandomFlow::Loop(const Place& outside, Random& r, const std::string& name,
                                     const std::vector<Output>& values,
                                     const std::vector<Output>& captured, int times, int depth) {
  const uint64_t body_seed = r.Seed();
  const int parallel = 1 + r.Below(10);
  if (unroll_) {
    std::vector<Output> now = values;
    for (int i = 0; i < times && ok(); ++i) {
      Random again(body_seed);
      const std::string prefix = StrCat(name, "_", i);
      const NameScope scope(prefix);
      const Place inside{Named(outside.constants, prefix), Named(outside.loops, prefix)};
      now = Body(inside, again, name, ConstIn(inside.constants, i), now, captured, depth);
    }
    return now;
  }
  std::vector<Output> initial = {ConstIn(outside.constants, 0)};
  initial.insert(initial.end(), values.begin(), values.end());
  const Output limit = ConstIn(outside.constants, times);
  const auto enter = [&](const Output& value) {
    return Enter(value, name, {.is_constant = true, .parallel_iterations = parallel});
  };
  const Entered around(outside.loops);
  auto exits = LoopByHand(
      name, initial, [&](const std::vector<Output>& v) { return Less(v[0], enter(limit)); },
      [&](const std::vector<Output>& v) {
        Random again(body_seed);
        const Place inside{After(v[0]), CurrentBuilding()};
        std::vector<Output> constant;
        for (const Output& c : captured) constant.push_back(enter(c));
        std::vector<Output> next = {Add(v[0], ConstIn(inside.constants, 1))};
        // For constants that functions of ops make for themselves.
        const Entered triggered(inside.constants);
        const std::vector<Output> carried(v.begin() + 1, v.end());
        for (const Output& o : Body(inside, again, name, v[0], carried, constant, depth)) {
          next.push_back(o);
        }
        return next;
      },
      parallel);
  if (!exits.empty()) exits.erase(exits.begin());
  return exits;
}

void RandomFlow::AddLoop() {
  const std::string name = StrCat("loop", loops_++);
  std::vector<Output> values = {top_.Any()};
  if (r_.Chance(50)) values.push_back(top_.Any());
  const Output captured = top_.Any();
  const std::vector<Output> exits = Loop(Here(), r_, name, values, {captured}, r_.Below(5), 0);
  // A loop needs what its body reads even when it does not run; unrolled it would not.
  std::vector<Output> needed = values;
  needed.push_back(captured);
  const ControlDependencies after(needed);
  for (size_t i = 0; i < exits.size(); ++i) {
    top_.Keep(StopGradient(exits[i], {.name = StrCat(name, "_out", i)}));
  }
}

}  // namespace tenon::testing
