// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/build/building.h"

namespace tenon {

/// Options of Variable, by name.
struct VariableOptions {
  /// Whether optimizers change it.
  bool trainable = true;
  /// Whether it is of this process alone, as the counts of a metric are: initialised by
  /// LocalVariablesInitializer, and in no checkpoint. It belongs on a device of the worker.
  bool local = false;
  /// A variable that handles name (VarHandleOp), TensorFlow 2's kind, instead of one that
  /// references name (VariableV2), as the graphs and scripts of TensorFlow 1 have it. A read of a
  /// resource is the value of one moment; a value read from a reference shows updates until it is
  /// used, so that reads before an update must say so (ControlDependencies). Ops change it through
  /// ref() with the ops for resources.
  bool resource = false;
  /// The part of a larger tensor that it holds.
  std::optional<VariablePart> part = {};
  std::source_location location = std::source_location::current();
};

/// A variable of the graph that is being built, as tf.Variable makes it: a VariableV2 [name], an
/// Assign of its initial value [name/Assign] and an Identity [name/read], which it stands for where
/// an input is wanted; or, as a resource, a VarHandleOp, an AssignVariableOp and a ReadVariableOp
/// [name/Read/ReadVariableOp]. The graph knows its variables: optimizers, initializers and savers
/// find them there. Made within a branch or loop, it is outside of it. Small; copy it freely.
///
///   Variable w("w", RandomNormal({784, 100}));
///   Output y = MatMul(x, w);
class Variable {
 public:
  /// None: to be assigned one.
  Variable() = default;
  /// `initial_value` must have a known shape.
  Variable(std::string_view name, const Input& initial_value, const VariableOptions& options = {});
  /// One that the graph knows.
  explicit Variable(const VariableEntry& nodes) : ref_(nodes.ref), value_(nodes.value) {}

  operator Output() const { return value_; }  // NOLINT: it stands for its value
  /// A part of its value; see slicing.h.
  Output operator[](const SliceIndices& indices) const { return value_[indices]; }
  /// What ops read.
  const Output& value() const { return value_; }
  /// The reference, or the handle, for ops that change it.
  const Output& ref() const { return ref_; }

 private:
  Output ref_, value_;
};

/// The graph's entry of `variable`; null when it is of no Variable of the graph that is being
/// built. Stays where it is until the next variable is made.
const VariableEntry* FindVariable(const Output& variable);
/// Its value at this point of the step: after what new nodes wait for, whichever kind it is.
Output ReadVariable(const VariableEntry& variable);
/// Changes it, whichever kind it is: `op` is Assign, AssignAdd or AssignSub. The node.
Node* ChangeVariable(const VariableEntry& variable, std::string_view op, const Input& value,
                     const OpOptions& options = {});

/// A node that gives every variable of the graph that is not local its initial value
/// (tf.global_variables_initializer); `init` by default.
Node* GlobalVariablesInitializer(const OpOptions& options = {.name = "init"});
/// The same for the local ones (tf.local_variables_initializer).
Node* LocalVariablesInitializer(const OpOptions& options = {.name = "init_local"});

/// The names of the variables that have no value yet, a string vector
/// (tf.report_uninitialized_variables); of those that are not local, unless `local`.
Output ReportUninitializedVariables(bool local = false, const OpOptions& options = {});

/// The step counter of the graph: an int64 variable "global_step", on the first call made
/// (tf.train.get_or_create_global_step). Where it is placed is what is entered at that call.
Variable GlobalStep(const std::source_location& at = std::source_location::current());

}  // namespace tenon
