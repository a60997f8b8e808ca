// SPDX-License-Identifier: Apache-2.0
#include "train/gradient_descent.h"

#include "core/gradients.h"
#include "ops/array_ops.h"
#include "ops/state_ops.h"

namespace tenon {
namespace {

Output ScalarConst(const Scope& scope, DType dtype, double value) {
  Tensor scalar(dtype, Shape());
  const bool known = Dispatch(dtype, RealTypes(), [&](auto zero) {
    using T = decltype(zero);
    *scalar.data<T>() = static_cast<T>(value);
  });
  if (!known) scope.Fail(InvalidArgument("no gradient descent on ", ToString(dtype)));
  return Const(scope, scalar);
}

}  // namespace

Node* GradientDescentOptimizer::Minimize(const Scope& scope, Output loss,
                                         const VariableSet& variables, Output global_step) const {
  const std::vector<ModelVariable> trained = variables.trainable();
  std::vector<Output> values, gradients;
  for (const ModelVariable& v : trained) values.push_back(v.value);
  if (Status s = AddGradients(scope, {loss}, values, {}, &gradients); !s.ok()) {
    scope.Fail(s);
    return nullptr;
  }
  std::vector<Output> updates;
  for (size_t i = 0; i < trained.size(); ++i) {
    const ModelVariable& v = trained[i];
    // Beside the variable, the rate included: it need not travel in every step.
    const Scope beside = scope.AtRoot()
                             .WithPrefix(StrCat(name_, "/update_", v.name()))
                             .WithDevice(v.ref.node->requested_device())
                             .ColocatedWith(v.ref);
    const Output rate =
        ScalarConst(beside.WithName("learning_rate"), v.ref.dtype(), learning_rate_);
    updates.push_back(ApplyGradientDescent(beside, v.ref, rate, gradients[i]));
  }
  if (!global_step) return NoOp(scope.WithName(name_).WithControlDependencies(updates));
  const Scope beside = scope.AtRoot().WithDevice(global_step.node->requested_device());
  const Output one = ScalarConst(beside.WithPrefix(name_).WithName("value"), global_step.dtype(), 1);
  return AssignAdd(beside.WithName(name_).WithControlDependencies(updates), global_step, one).node;
}

}  // namespace tenon
