// SPDX-License-Identifier: Apache-2.0
#include "train/layers/dropout.h"

#include <optional>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/random/random_ops.h"
#include "train/layers/training_flag.h"
#include "train/value_as.h"

namespace tenon {

Output Dropout(const Input& input, const Input& rate, const DropoutOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const NameScope scope(UnusedScope(options.name));
  const Output x = Const(input);
  const std::optional<double> number = KnownNumber(rate);
  if (number && !(*number >= 0 && *number < 1)) {
    context.Fail(InvalidArgument("the rate of a dropout must be in [0, 1), found ", *number),
                 options.location);
  }
  const Output tensor = number ? Output() : ValueAs(rate, x.dtype());
  if (!number && tensor.exists() && tensor.shape().rank() > 0) {
    context.Fail(InvalidArgument("the rate of a dropout must be a number or a scalar, found ",
                                 tensor.shape().ToString()),
                 options.location);
  }
  const TrainingFlag training(options.training);
  if (!context.graph->error().ok()) return {};
  if (number == 0.0) return x;
  const auto dropped = [&] {
    const Output shape = options.noise_shape.left_out() ? ShapeOf(x) : Const(options.noise_shape);
    const Output noise = RandomUniform(shape, x.dtype(), {.seed = options.seed});
    const Output zero = Const(0, {.dtype = x.dtype()});
    const Output keep = number ? noise >= *number : noise >= tensor;
    const Output scaled = number ? x * (1 / (1 - *number)) : x / (1 - tensor);
    return std::vector<Output>{SelectV2(keep, scaled, zero)};
  };
  const auto kept = [&] { return std::vector<Output>{Identity(x)}; };
  const std::vector<Output> y = training.Choose(dropped, kept);
  return y.empty() ? Output() : y[0];
}

}  // namespace tenon
