// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/rmsprop.h"

namespace tenon {

RMSProp::RMSProp(const Input& learning_rate, const RMSPropOptions& options)
    : Optimizer(options.name, options.centered ? std::vector<Slot>{{"rms", 1}, {"mg"}, {"momentum"}}
                                               : std::vector<Slot>{{"rms", 1}, {"momentum"}}),
      learning_rate_(learning_rate),
      options_(options) {}

Node* RMSProp::Apply(const Gradient& gradient, const VariableEntry& variable) {
  UpdateOp op{.kind = "RMSProp", .slots = {"rms", "momentum"}};
  if (options_.centered) op = {.kind = "CenteredRMSProp", .slots = {"mg", "rms", "momentum"}};
  op.before = {Scalar(learning_rate_, "learning_rate", variable),
               Scalar(options_.decay, "decay", variable),
               Scalar(options_.momentum, "momentum", variable),
               Scalar(options_.epsilon, "epsilon", variable)};
  return Build(op, gradient, variable);
}

Node* Adadelta::Apply(const Gradient& gradient, const VariableEntry& variable) {
  return Build(
      {.kind = "Adadelta",
       .slots = {"accum", "accum_update"},
       .before = {Scalar(learning_rate_, "lr", variable), Scalar(options_.rho, "rho", variable),
                  Scalar(options_.epsilon, "epsilon", variable)}},
      gradient, variable);
}

}  // namespace tenon
