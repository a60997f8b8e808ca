// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/random_flow.h"

#include "ops/array_ops.h"
#include "ops/math_ops.h"
#include "ops/state_ops.h"
#include "tests/testing/loops.h"

namespace tenon::testing {

void RandomFlow::AddVariables(int count) {
  static const std::vector<DType> types = {DType::kFloat, DType::kDouble, DType::kInt64};
  for (int i = 0; i < count; ++i) {
    Variable v;
    v.dtype = r_.OneOf(types);
    v.shape = r_.Chance(30) ? Shape() : Shape{1 + r_.Below(3), 1 + r_.Below(4)};
    v.is_ref = r_.Chance(50);
    const Scope named = s_.WithName(StrCat(label_, "_v", i));
    v.handle = v.is_ref ? VariableV2(named, v.shape, v.dtype) : VarHandleOp(named, v.dtype, v.shape);
    const Output initial = Const(s_, RandomTensor(r_, v.dtype, v.shape));
    initializers_.push_back(v.is_ref ? Assign(s_, v.handle, initial)
                                     : Output(AssignVariableOp(s_, v.handle, initial)));
    variables_.push_back(v);
    top_.Keep(Read(variables_.back()));
  }
}

void RandomFlow::Finish() {
  initializer_ = NoOp(s_.WithName("init").WithControlDependencies(initializers_));
}

void RandomFlow::Used(Variable& v, Node* node) {
  v.uses.push_back(Output(node));
  state_.insert(node);
}

Output RandomFlow::Read(Variable& v) {
  Scope s = s_.WithControlDependencies(v.uses);
  // What reads a reference has to be beside it: elsewhere the value would be sent when the variable
  // is there, not when the control dependencies are.
  const Output value = v.is_ref ? Identity(s.ColocatedWith(v.handle), v.handle)
                                : ReadVariableOp(s, v.handle, v.dtype);
  if (value) Used(v, value.node);
  return value;
}

Node* RandomFlow::Update(const Scope& s, const Variable& v, Output value) {
  const int kind = r_.Below(3);
  if (v.is_ref) {
    using Change = Output (*)(const Scope&, Output, Output);
    static const Change changes[] = {
        AssignAdd, AssignSub, [](const Scope& scope, Output ref, Output to) {
          return Assign(scope, ref, to);
        }};
    return changes[kind](s, v.handle, value).node;
  }
  using Change = Node* (*)(const Scope&, Output, Output);
  static const Change changes[] = {
      AssignAddVariableOp, AssignSubVariableOp, [](const Scope& scope, Output handle, Output to) {
        return AssignVariableOp(scope, handle, to);
      }};
  return changes[kind](s, v.handle, value);
}

Output RandomFlow::ValueFor(const Variable& v) {
  const Output start = Const(s_, RandomTensor(r_, v.dtype, v.shape));
  return top_.Absorb(start, top_.Any());
}

void RandomFlow::UseVariable() {
  if (variables_.empty()) return top_.Grow();
  Variable& v = variables_[r_.Below(static_cast<int>(variables_.size()))];
  if (r_.Chance(40)) return top_.Keep(Read(v));
  const Output value = ValueFor(v);
  if (!s_.ok()) return;
  if (r_.Chance(25)) {
    // An update that runs in one branch only.
    const auto sides = s_.Op("Switch").Input(value).Input(top_.Predicate()).Outputs();
    if (sides.empty()) return;
    Node* update = Update(s_.WithControlDependencies(v.uses), v, sides[1]);
    if (update == nullptr) return;
    const Output changed = Identity(s_.WithControlDependencies({Output(update)}), sides[1]);
    const auto merged = s_.Op("Merge").Input(std::vector<Output>{sides[0], changed}).Outputs();
    if (merged.empty()) return;
    // The other branch does not wait for the earlier uses, so they are kept.
    state_.insert(update);
    Used(v, merged[0].node);
    return top_.Keep(merged[0]);
  }
  Node* update = Update(s_.WithControlDependencies(v.uses), v, value);
  if (update == nullptr) return;
  v.uses.clear();
  Used(v, update);
  updates_.push_back(update);
  if (r_.Chance(60)) top_.Keep(Read(v));
}

std::vector<Output> RandomFlow::Branch(const Place& inside, Random& r,
                                       const std::vector<Output>& values, int depth) {
  RandomOps ops(inside.ops, inside.constants, r, values);
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
    const auto both = outside.ops.Op("Switch").Input(v).Input(predicate).Outputs();
    if (both.empty()) return {};
    for (int side = 0; side < 2; ++side) sides[side].push_back(both[side]);
  }
  for (int side = 0; side < 2; ++side) {
    const Output pivot = Identity(outside.ops, sides[side][0]);
    const Place inside{outside.ops, outside.ops.WithControlDependencies({pivot}), outside.loops};
    results[side] = Branch(inside, r, sides[side], depth);
  }
  if (!outside.ops.ok()) return {};
  std::vector<Output> merged;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto both = outside.ops.Op("Merge")
                          .Input(std::vector<Output>{results[0][i], results[1][i]})
                          .Outputs();
    if (both.empty()) return {};
    merged.push_back(both[0]);
    if (i == 0 && r.Chance(30)) merged.push_back(both[1]);
  }
  return merged;
}

void RandomFlow::AddCond() {
  std::vector<Output> values = {top_.Any()};
  if (r_.Chance(50)) values.push_back(top_.Any());
  for (const Output& v : Cond({s_, s_, s_}, r_, top_.Predicate(), values, 0)) top_.Keep(v);
  if (dead_value_.empty() && s_.ok()) {
    const Output never = Const(s_, false);
    const auto sides = s_.Op("Switch").Input(values[0]).Input(never).Outputs();
    if (!sides.empty()) dead_value_ = Identity(s_, sides[1]).name();
  }
}

std::vector<Output> RandomFlow::Body(const Place& inside, Random& r, const std::string& name,
                                     Output counter, const std::vector<Output>& values,
                                     const std::vector<Output>& captured, int depth) {
  std::vector<Output> known = values;
  known.push_back(counter);
  known.insert(known.end(), captured.begin(), captured.end());
  RandomOps ops(inside.ops, inside.constants, r, known);
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
    for (int i = 0; i < times && outside.ops.ok(); ++i) {
      Random again(body_seed);
      const std::string prefix = StrCat(name, "_", i);
      const Place inside{outside.ops.WithPrefix(prefix), outside.constants.WithPrefix(prefix),
                         outside.loops.WithPrefix(prefix)};
      now = Body(inside, again, name, Const(inside.constants, i), now, captured, depth);
    }
    return now;
  }
  std::vector<Output> initial = {Const(outside.constants, 0)};
  initial.insert(initial.end(), values.begin(), values.end());
  const Output limit = Const(outside.constants, times);
  const auto enter = [&](const Scope& s, const Output& value) {
    return s.Op("Enter")
        .Input(value)
        .Attr("frame_name", name)
        .Attr("is_constant", true)
        .Attr("parallel_iterations", parallel)
        .Output();
  };
  auto exits = WhileLoop(
      outside.loops, name, initial,
      [&](const Scope& s, const std::vector<Output>& v) { return Less(s, v[0], enter(s, limit)); },
      [&](const Scope& s, const std::vector<Output>& v) {
        Random again(body_seed);
        // For constants that functions of ops make for themselves.
        const Scope triggered = s.WithControlDependencies({v[0]});
        const Place inside{triggered, triggered, s};
        std::vector<Output> constant;
        for (const Output& c : captured) constant.push_back(enter(s, c));
        std::vector<Output> next = {Add(s, v[0], Const(inside.constants, 1))};
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
  const std::vector<Output> exits =
      Loop({s_, s_, s_}, r_, name, values, {captured}, r_.Below(5), 0);
  // A loop needs what its body reads even when it does not run; unrolled it would not.
  std::vector<Output> needed = values;
  needed.push_back(captured);
  const Scope after = s_.WithControlDependencies(needed);
  for (size_t i = 0; i < exits.size(); ++i) {
    top_.Keep(StopGradient(after.WithName(StrCat(name, "_out", i)), exits[i]));
  }
}

}  // namespace tenon::testing
