// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/scope.h"

namespace tenon {

/// One variable of a model: the nodes that TensorFlow's tf.Variable makes (names in brackets).
struct ModelVariable {
  Output ref;        // VariableV2 [name]
  Output value;      // what ops read: Identity [name/read]
  Node* initializer;  // Assign [name/Assign]
  bool trainable;

  const std::string& name() const { return ref.node->name(); }
};

/// The variables of a model under construction, in the order they were made. A value with references
/// into the scope's graph.
class VariableSet {
 public:
  /// A variable that starts as `initial_value`, whose shape must be fully known. Returns what ops
  /// read.
  Output Add(const Scope& scope, Output initial_value, bool trainable = true);

  const std::vector<ModelVariable>& all() const { return variables_; }
  /// The variable that `value` (or a reference) belongs to; null when it is none of them.
  const ModelVariable* Find(const Output& value) const;
  std::vector<ModelVariable> trainable() const;

  /// A node that runs all initializers (tf.global_variables_initializer).
  Node* Initializer(const Scope& scope) const;
  /// The names of the variables that have no value yet, a string vector
  /// (tf.report_uninitialized_variables).
  Output ReportUninitialized(const Scope& scope) const;

 private:
  std::vector<ModelVariable> variables_;
};

}  // namespace tenon
