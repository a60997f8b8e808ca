// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/building.h"

namespace tenon {

/// Options of Variable, by name.
struct VariableOptions {
  /// Whether optimizers change it.
  bool trainable = true;
  std::source_location location = std::source_location::current();
};

/// A variable of the graph that is being built, as tf.Variable makes it: a VariableV2 [name], an
/// Assign of its initial value [name/Assign] and an Identity [name/read], which it stands for where
/// an input is wanted. The graph knows its variables: optimizers and initializers find them there.
/// Small; copy it freely.
///
///   Variable w("w", RandomNormal({784, 100}));
///   Output y = MatMul(x, w);
class Variable {
 public:
  /// None: to be assigned one.
  Variable() = default;
  /// `initial_value` must have a known shape.
  Variable(std::string_view name, const Input& initial_value, const VariableOptions& options = {});

  operator Output() const { return value_; }  // NOLINT: it stands for its value
  /// A part of its value; see slicing.h.
  Output operator[](const SliceIndices& indices) const { return value_[indices]; }
  /// What ops read.
  const Output& value() const { return value_; }
  /// The reference, for ops that change it.
  const Output& ref() const { return ref_; }

 private:
  Output ref_, value_;
};

/// A node that gives every variable of the graph its initial value
/// (tf.global_variables_initializer); `init` by default.
Node* GlobalVariablesInitializer(const OpOptions& options = {.name = "init"});

/// The names of the variables that have no value yet, a string vector
/// (tf.report_uninitialized_variables).
Output ReportUninitializedVariables(const OpOptions& options = {});

}  // namespace tenon
