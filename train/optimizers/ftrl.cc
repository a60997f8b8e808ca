// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/ftrl.h"

#include "ops/math/math_ops.h"
#include "ops/math/operators.h"

namespace tenon {

void Ftrl::Prepare(const std::vector<GradientAndVariable>&) {
  const auto at_least_0 = [&](double value, std::string_view what) {
    if (value >= 0) return;
    CurrentBuilding().Fail(
        InvalidArgument(name(), ": ", what, " must be at least 0, found ", value),
        std::source_location::current());
  };
  at_least_0(options_.initial_accumulator_value, "initial_accumulator_value");
  at_least_0(options_.l1_regularization_strength, "l1_regularization_strength");
  at_least_0(options_.l2_regularization_strength, "l2_regularization_strength");
  at_least_0(options_.l2_shrinkage_regularization_strength, "l2_shrinkage_regularization_strength");
  at_least_0(-options_.learning_rate_power, "-learning_rate_power");
}

Node* Ftrl::Apply(const Gradient& gradient, const VariableEntry& variable) {
  const Output rate = Scalar(learning_rate_, "learning_rate", variable);
  Output l2 = Scalar(options_.l2_regularization_strength, "l2_regularization_strength", variable);
  if (options_.beta != 0) l2 = l2 + options_.beta / (2 * Maximum(rate, 1e-36));
  UpdateOp op{.kind = "Ftrl", .slots = {"accum", "linear"}};
  op.after = {rate,
              Scalar(options_.l1_regularization_strength, "l1_regularization_strength", variable),
              l2};
  if (options_.l2_shrinkage_regularization_strength > 0) {
    op.kind = "FtrlV2";
    op.after.push_back(Scalar(options_.l2_shrinkage_regularization_strength,
                              "l2_shrinkage_regularization_strength", variable));
  }
  op.after.push_back(Scalar(options_.learning_rate_power, "learning_rate_power", variable));
  return Build(op, gradient, variable);
}

}  // namespace tenon
