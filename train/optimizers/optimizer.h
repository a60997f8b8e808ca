// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/gradient/gradients.h"
#include "train/variables.h"

// Optimizers: they add to a graph the ops that change its variables so that a loss falls.
//
//   Adam adam(0.001);
//   Node* train = adam.Minimize(loss, {.global_step = GlobalStep()});
//
// or, to change the gradients on the way (see clipping.h):
//
//   auto gradients = adam.ComputeGradients(loss);
//   for (auto& [gradient, variable] : gradients) gradient = ClipByNorm(gradient, 5);
//   Node* train = adam.ApplyGradients(gradients);
//
// A rate, and any other number of an optimizer, is a number or a scalar of the graph: a schedule
// (learning_rate_schedules.h), or a Placeholder to be fed. A number becomes a constant on the
// device of each variable, so that it does not travel in every step.

namespace tenon {

struct GradientAndVariable {
  Gradient gradient;  // none when the loss does not depend on the variable
  VariableEntry variable;
};

struct ComputeGradientsOptions {
  /// The Variables to differentiate by; the trainable ones of the graph when empty.
  std::vector<Output> variables = {};
  /// The gradient of the loss; ones by default.
  Output grad_loss = {};
  std::source_location location = std::source_location::current();
};

struct ApplyGradientsOptions {
  /// A Variable, its reference or its handle, that the step increments after the updates.
  Output global_step = {};
  /// The name of the node, and the scope of the updates; the optimizer's by default.
  std::string name = {};
  std::source_location location = std::source_location::current();
};

struct MinimizeOptions {
  Output global_step = {};             // as ApplyGradientsOptions has it
  std::vector<Output> variables = {};  // as ComputeGradientsOptions has it
  std::string name = {};               // as ApplyGradientsOptions has it
  std::source_location location = std::source_location::current();
};

/// What all optimizers have in common (tf.compat.v1.train.Optimizer). One serves one graph, which
/// must outlive what is asked of it; not thread-safe, as building is not.
///
/// What an optimizer keeps for a variable (its slots: the moments of Adam) are variables beside it
/// of the same kind, not trainable, with TensorFlow's names: "w/Adam", "w/Adam_1". They are at the
/// root of the graph, whatever scope is entered; the updates are within it: "train/Adam/update_w".
class Optimizer {
 public:
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// Adds the gradients of `loss`, one entry a variable, in their order; sparse for a variable that
  /// is only gathered from; as Combine leaves them. The mistake is InvalidArgument when there is no
  /// variable, when one of those given is of no Variable of the graph, and as SparseGradients has
  /// it.
  std::vector<GradientAndVariable> ComputeGradients(const Output& loss,
                                                    const ComputeGradientsOptions& options = {});

  /// Adds what becomes of the gradients of this process before they are applied, such as the mean
  /// with those of others. ComputeGradients does it; an optimizer around this one that adds up the
  /// gradients of several steps does it with the sums.
  virtual std::vector<GradientAndVariable> Combine(std::vector<GradientAndVariable> gradients) {
    return gradients;
  }

  /// Adds the updates of the variables that have a gradient. The node runs one training step. The
  /// mistake is InvalidArgument when no variable has one. Control dependencies that are entered
  /// hold for the updates.
  virtual Node* ApplyGradients(const std::vector<GradientAndVariable>& gradients,
                               const ApplyGradientsOptions& options = {});

  /// Both of the above. The node runs one training step; FailedNode() after a mistake.
  Node* Minimize(const Output& loss, const MinimizeOptions& options = {});

  /// Makes the variables that ApplyGradients keeps for these, unless they are there, in the scope
  /// that was entered: for what calls ApplyGradients in another scope, or in a branch.
  void MakeVariables(const std::vector<GradientAndVariable>& gradients);

  const std::string& name() const { return name_; }
  /// The slot `slot` of a variable; one without nodes when there is none (get_slot).
  Variable GetSlot(const Output& variable, std::string_view slot) const;
  /// The slots that the variables have, sorted (get_slot_names).
  std::vector<std::string> SlotNames() const;
  /// Every variable that the optimizer has made, sorted by name.
  virtual std::vector<VariableEntry> variables() const;

 protected:
  /// What an optimizer keeps for each variable, of its shape and dtype: the name, and the value of
  /// all its elements at the start.
  struct Slot {
    std::string name;
    double initial_value = 0;
  };
  explicit Optimizer(std::string name, std::vector<Slot> slots = {})
      : name_(std::move(name)), slots_(std::move(slots)) {}

  /// Makes the variables that are no slots of every variable, unless they are there, and checks
  /// the numbers. Called before the updates are built, with the variables that have gradients.
  virtual void Prepare(const std::vector<GradientAndVariable>& gradients);
  /// Adds the update of one variable, beside it and in a scope of its own. The rows of a sparse
  /// gradient are different ones, unless TakesRepeatedRows().
  virtual Node* Apply(const Gradient& gradient, const VariableEntry& variable) = 0;
  virtual bool TakesRepeatedRows() const { return false; }
  /// Adds what comes after all updates; what the step must wait for.
  virtual std::vector<Output> Finish(std::vector<Output> updates) { return updates; }

  /// For Apply: the scalar in the dtype of `variable`. A number is a constant that all variables on
  /// its device share; the same `name` must always be the same number.
  Output Scalar(const Input& value, std::string_view name, const VariableEntry& variable);
  /// For Apply: the op that makes the whole step: Apply<kind>, SparseApply<kind>, and those for
  /// resources. Takes the variable, its slots, the scalars `before`, the gradient, and `after`.
  struct UpdateOp {
    std::string kind;
    std::vector<std::string> slots = {};
    std::vector<Output> before = {}, after = {};
    bool use_nesterov = false;
  };
  Node* Build(const UpdateOp& op, const Gradient& gradient, const VariableEntry& variable) const;
  /// The slot, which Prepare has made.
  const VariableEntry& SlotOf(const VariableEntry& variable, std::string_view slot) const;
  /// For Prepare: the slot of one variable, of shape `dims`, unless it is there.
  void MakeSlot(const VariableEntry& variable, const Slot& slot, const std::vector<int64_t>& dims);
  /// For Prepare: a variable beside `beside`, called `name` in the scope that was entered, in
  /// `dtype` when the value is a number. The same one for the same name.
  const VariableEntry& OwnVariable(std::string_view name, const Input& initial_value,
                                   const VariableEntry& beside, DType dtype = DType::kFloat);
  const VariableEntry& OwnVariable(std::string_view name) const {
    return own_.at(std::string(name));
  }

 private:
  std::vector<Output> Updates(const std::vector<GradientAndVariable>& gradients);

  const std::string name_;
  const std::vector<Slot> slots_;
  /// By the slot's name, then the variable.
  std::map<std::string, flat_hash_map<const Node*, VariableEntry>, std::less<>> made_;
  std::map<std::string, VariableEntry> own_;
  /// The scope of the step that is being built.
  std::string scope_;
  std::map<std::string, Output> constants_;
};

/// The gradient with each row once, the sum of those that were the same (Unique and
/// UnsortedSegmentSum); a dense one as it is.
Gradient WithoutRepeatedRows(const Gradient& gradient);

}  // namespace tenon
