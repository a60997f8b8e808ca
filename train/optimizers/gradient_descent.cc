// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/gradient_descent.h"

#include "ops/math/operators.h"
#include "ops/state/state_ops.h"

namespace tenon {

Node* GradientDescent::Apply(const Gradient& gradient, const VariableEntry& variable) {
  const Output rate = Scalar(learning_rate_, "learning_rate", variable);
  if (!gradient.is_sparse()) {
    return Build({.kind = "GradientDescent", .before = {rate}}, gradient, variable);
  }
  const IndexedSlices& rows = gradient.slices;
  const Output step = rows.values * rate;
  return variable.is_resource() ? ResourceScatterSub(variable.ref, rows.indices, step)
                                : ScatterSub(variable.ref, rows.indices, step).node;
}

Node* Momentum::Apply(const Gradient& gradient, const VariableEntry& variable) {
  return Build({.kind = "Momentum",
                .slots = {"momentum"},
                .before = {Scalar(learning_rate_, "learning_rate", variable)},
                .after = {Scalar(momentum_, "momentum", variable)},
                .use_nesterov = use_nesterov_},
               gradient, variable);
}

Node* ProximalGradientDescent::Apply(const Gradient& gradient, const VariableEntry& variable) {
  const auto strength = [&](const Input& value, std::string_view name) {
    return Scalar(value, StrCat(name, "_regularization_strength"), variable);
  };
  return Build({.kind = "ProximalGradientDescent",
                .before = {Scalar(learning_rate_, "learning_rate", variable),
                           strength(options_.l1_regularization_strength, "l1"),
                           strength(options_.l2_regularization_strength, "l2")}},
               gradient, variable);
}

}  // namespace tenon
