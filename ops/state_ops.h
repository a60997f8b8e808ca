// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/scope.h"

// Graph-building functions for variables. Two kinds exist, as in TensorFlow 1:
//
//   ref variables        the op gives a reference, which reads as a value and which Assign changes
//   resource variables   VarHandleOp gives a handle; reading and changing are ops of their own
//
//   Output w = VariableV2(root.WithName("w"), {784, 10}, DType::kFloat);
//   Output init = Assign(root, w, initial_value);
//   Output y = MatMul(root, x, w);

namespace tenon {

// --- Ref variables ---

/// A variable of that shape, uninitialised until it is assigned. It is known in its task by
/// `shared_name`, or by the node's name, so that two graphs share it.
Output VariableV2(const Scope& s, PartialShape shape, DType dtype, std::string_view container = "",
                  std::string_view shared_name = "");
/// Sets the variable; the reference again. Runs after `value` is there.
Output Assign(const Scope& s, Output ref, Output value, bool validate_shape = true);
Output AssignAdd(const Scope& s, Output ref, Output value);
Output AssignSub(const Scope& s, Output ref, Output value);
/// A bool scalar.
Output IsVariableInitialized(const Scope& s, Output ref);
/// ref[indices[i], ...] = (or +=, -=) updates[i, ...]; the reference again.
Output ScatterUpdate(const Scope& s, Output ref, Output indices, Output updates);
Output ScatterAdd(const Scope& s, Output ref, Output indices, Output updates);
Output ScatterSub(const Scope& s, Output ref, Output indices, Output updates);

// --- Resource variables ---

/// The handle of the variable `shared_name` (when empty: the node's name).
Output VarHandleOp(const Scope& s, DType dtype, PartialShape shape, std::string_view container = "",
                   std::string_view shared_name = "");
Output ReadVariableOp(const Scope& s, Output resource, DType dtype);
Node* AssignVariableOp(const Scope& s, Output resource, Output value, bool validate_shape = false);
Node* AssignAddVariableOp(const Scope& s, Output resource, Output value);
Node* AssignSubVariableOp(const Scope& s, Output resource, Output value);
/// A bool scalar.
Output VarIsInitializedOp(const Scope& s, Output resource);
Node* DestroyResourceOp(const Scope& s, Output resource, bool ignore_lookup_error = true);
Output VariableShape(const Scope& s, Output resource, DType out_type = DType::kInt32);
Output ResourceGather(const Scope& s, Output resource, Output indices, DType dtype,
                      int64_t batch_dims = 0);
Node* ResourceScatterUpdate(const Scope& s, Output resource, Output indices, Output updates);
Node* ResourceScatterAdd(const Scope& s, Output resource, Output indices, Output updates);
Node* ResourceScatterSub(const Scope& s, Output resource, Output indices, Output updates);

// --- Training steps; learning rates and the like are scalars, `grad` has the variable's shape ---

/// var -= alpha * delta
Output ApplyGradientDescent(const Scope& s, Output var, Output alpha, Output delta);
Node* ResourceApplyGradientDescent(const Scope& s, Output var, Output alpha, Output delta);
/// accum = momentum * accum + grad; var -= lr * accum
Output ApplyMomentum(const Scope& s, Output var, Output accum, Output lr, Output grad,
                     Output momentum, bool use_nesterov = false);
Node* ResourceApplyMomentum(const Scope& s, Output var, Output accum, Output lr, Output grad,
                            Output momentum, bool use_nesterov = false);
/// accum += grad^2; var -= lr * grad / sqrt(accum) (Duchi et al. 2011)
Output ApplyAdagrad(const Scope& s, Output var, Output accum, Output lr, Output grad,
                    bool update_slots = true);
Node* ResourceApplyAdagrad(const Scope& s, Output var, Output accum, Output lr, Output grad,
                           bool update_slots = true);
/// The scalars of Adam (Kingma and Ba 2014): beta1_power is beta1 to the number of the step.
struct AdamScalars {
  Output beta1_power, beta2_power, lr, beta1, beta2, epsilon;
};
Output ApplyAdam(const Scope& s, Output var, Output m, Output v, const AdamScalars& scalars,
                 Output grad, bool use_nesterov = false);
Node* ResourceApplyAdam(const Scope& s, Output var, Output m, Output v, const AdamScalars& scalars,
                        Output grad, bool use_nesterov = false);

}  // namespace tenon
