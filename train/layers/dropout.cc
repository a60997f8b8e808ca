// SPDX-License-Identifier: Apache-2.0
#include "train/layers/dropout.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/random/random_ops.h"
#include "train/layers/training_flag.h"

namespace tenon {

Output Dropout(const Input& input, double rate, const DropoutOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const NameScope scope(UnusedScope(options.name));
  const Output x = Const(input);
  if (!(rate >= 0 && rate < 1)) {
    context.Fail(InvalidArgument("the rate of a dropout must be in [0, 1), found ", rate),
                 options.location);
  }
  const TrainingFlag training(options.training);
  if (!context.graph->error().ok()) return {};
  if (rate == 0) return x;
  const auto dropped = [&] {
    const Output shape = options.noise_shape.left_out() ? ShapeOf(x) : Const(options.noise_shape);
    const Output noise = RandomUniform(shape, x.dtype(), {.seed = options.seed});
    const Output zero = Const(0, {.dtype = x.dtype()});
    return std::vector<Output>{SelectV2(noise >= rate, x * (1 / (1 - rate)), zero)};
  };
  const auto kept = [&] { return std::vector<Output>{Identity(x)}; };
  const std::vector<Output> y = training.Choose(dropped, kept);
  return y.empty() ? Output() : y[0];
}

}  // namespace tenon
