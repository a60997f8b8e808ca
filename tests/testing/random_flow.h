// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/build/building.h"
#include "tests/testing/random_ops.h"

namespace tenon::testing {

/// Adds variables, conditionals and while loops to a random graph, over the values of a RandomOps
/// at the top level, which has to be current.
class RandomFlow {
 public:
  /// `label` is in the names of variables. With `unroll` loops are built as what they compute.
  RandomFlow(Random& random, RandomOps* top, std::string label, bool unroll)
      : r_(random), top_(*top), label_(std::move(label)), unroll_(unroll) {}

  /// Ref and resource variables in turn.
  void AddVariables(int count);
  /// A read or an update of some variable, after everything that was done with it before.
  void UseVariable();
  void AddCond();
  void AddLoop();
  /// Adds the initializer.
  void Finish();

  const Node* initializer() const { return initializer_; }
  /// The nodes that change variables.
  const std::vector<const Node*>& updates() const { return updates_; }
  /// Whether the node reads or changes a variable.
  bool IsState(const Node* node) const { return state_.contains(node); }
  /// The name of a tensor that never has a value, or "".
  const std::string& dead_value() const { return dead_value_; }

 private:
  struct Variable {
    Output handle;  // the reference, or the resource
    DType dtype;
    Shape shape;
    bool is_ref;
    std::vector<Output> uses;  // what the next use has to wait for
  };

  /// Where the inside of a branch or loop is built, of which the ops' place is current.
  struct Place {
    BuildContext constants;
    BuildContext loops;  // without control dependencies, which must not lead into a loop
  };
  /// The top level.
  static Place Here() { return {CurrentBuilding(), CurrentBuilding()}; }
  /// Whether there was no mistake yet.
  static bool ok() { return CurrentBuilding().graph->error().ok(); }

  Output Read(Variable& v);
  /// The node that changes `v`, which it is given `value` of the same dtype and shape for.
  Node* Update(const Variable& v, Output value);
  void Used(Variable& v, Node* node);
  Output ValueFor(const Variable& v);

  std::vector<Output> Cond(const Place& outside, Random& r, Output predicate,
                           const std::vector<Output>& values, int depth);
  std::vector<Output> Branch(const Place& inside, Random& r, const std::vector<Output>& values,
                             int depth);
  std::vector<Output> Loop(const Place& outside, Random& r, const std::string& name,
                           const std::vector<Output>& values, const std::vector<Output>& captured,
                           int times, int depth);
  std::vector<Output> Body(const Place& inside, Random& r, const std::string& name, Output counter,
                           const std::vector<Output>& values, const std::vector<Output>& captured,
                           int depth);

  Random& r_;
  RandomOps& top_;
  const std::string label_;
  const bool unroll_;
  int loops_ = 0;
  std::vector<Variable> variables_;
  std::vector<Output> initializers_;
  std::vector<const Node*> updates_;
  std::set<const Node*> state_;
  Node* initializer_ = nullptr;
  std::string dead_value_;
};

}  // namespace tenon::testing
