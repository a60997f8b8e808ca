// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers/learning_rate_schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "train/call_scope.h"
#include "train/value_as.h"

namespace tenon {
namespace {

/// The rate, which says in what dtype all is computed.
Output Rate(const Input& value) {
  return value.literal() != nullptr ? Const(value, {.dtype = DType::kFloat}) : Const(value);
}

/// Whether `steps` can be divided by, as far as the program says it; else a mistake.
void CheckSteps(const Input& steps) {
  const std::optional<double> number = KnownNumber(steps);
  if (!number || (*number > 0 && std::isfinite(*number))) return;
  CurrentBuilding().Fail(
      InvalidArgument("the number of steps of a learning rate's schedule must be ",
                      "above 0, found ", *number),
      steps.location());
}

/// step / decay_steps.
Output Progress(const Input& step, const Input& decay_steps, bool staircase, DType dtype) {
  CheckSteps(decay_steps);
  const Output progress = ValueAs(step, dtype) / ValueAs(decay_steps, dtype);
  return staircase ? Floor(progress) : progress;
}

Output CosineOf(const Output& rate, const Output& progress, const Output& factor,
                const Input& alpha) {
  const Output end = ValueAs(alpha, rate.dtype());
  const Output wave = 0.5 * factor * (1 + Cos(std::numbers::pi * progress));
  return rate * ((1 - end) * wave + end);
}

}  // namespace

Output ExponentialDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                        const Input& decay_rate, const DecayOptions& options) {
  const CallScope scope(options.name, "ExponentialDecay", options.location);
  const Output rate = Rate(learning_rate);
  const Output progress = Progress(step, decay_steps, options.staircase, rate.dtype());
  return rate * Pow(ValueAs(decay_rate, rate.dtype()), progress);
}

Output NaturalExpDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                       const Input& decay_rate, const DecayOptions& options) {
  const CallScope scope(options.name, "NaturalExpDecay", options.location);
  const Output rate = Rate(learning_rate);
  const Output progress = Progress(step, decay_steps, options.staircase, rate.dtype());
  return rate * Exp(-(ValueAs(decay_rate, rate.dtype()) * progress));
}

Output InverseTimeDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                        const Input& decay_rate, const DecayOptions& options) {
  const CallScope scope(options.name, "InverseTimeDecay", options.location);
  const Output rate = Rate(learning_rate);
  const Output progress = Progress(step, decay_steps, options.staircase, rate.dtype());
  return rate / (1 + ValueAs(decay_rate, rate.dtype()) * progress);
}

Output PolynomialDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                       const PolynomialDecayOptions& options) {
  const CallScope scope(options.name, "PolynomialDecay", options.location);
  CheckSteps(decay_steps);
  const Output rate = Rate(learning_rate);
  const Output end = ValueAs(options.end_learning_rate, rate.dtype());
  Output now = ValueAs(step, rate.dtype()), steps = ValueAs(decay_steps, rate.dtype());
  if (options.cycle) {
    steps = steps * Maximum(Ceil(now / steps), 1);
  } else {
    now = Minimum(now, steps);
  }
  return (rate - end) * Pow(1 - now / steps, ValueAs(options.power, rate.dtype())) + end;
}

Output CosineDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                   const CosineDecayOptions& options) {
  const CallScope scope(options.name, "CosineDecay", options.location);
  CheckSteps(decay_steps);
  const Output rate = Rate(learning_rate);
  const Output steps = ValueAs(decay_steps, rate.dtype());
  const Output progress = Minimum(ValueAs(step, rate.dtype()), steps) / steps;
  return CosineOf(rate, progress, ValueAs(1, rate.dtype()), options.alpha);
}

Output CosineDecayRestarts(const Input& learning_rate, const Input& step,
                           const Input& first_decay_steps,
                           const CosineDecayRestartsOptions& options) {
  const CallScope scope(options.name, "SGDRDecay", options.location);
  if (!(options.t_mul >= 1)) {
    CurrentBuilding().Fail(InvalidArgument("t_mul of a CosineDecayRestarts must be at least 1, ",
                                           "found ", options.t_mul),
                           options.location);
  }
  const Output rate = Rate(learning_rate);
  const Output progress = Progress(step, first_decay_steps, false, rate.dtype());
  const double t = options.t_mul;
  Output restarts, within;
  if (t == 1) {
    restarts = Floor(progress);
    within = progress - restarts;
  } else {
    // The first n periods take (1 - t^n) / (1 - t) times the first one.
    const Output base = ValueAs(t, rate.dtype());
    restarts = Floor(Log(1 - progress * (1 - t)) / Log(base));
    const Output length = Pow(base, restarts);
    within = (progress - (1 - length) / (1 - t)) / length;
  }
  return CosineOf(rate, within, Pow(ValueAs(options.m_mul, rate.dtype()), restarts), options.alpha);
}

Output PiecewiseConstant(const Input& step, const std::vector<double>& boundaries,
                         const std::vector<double>& values, const OpOptions& options) {
  const CallScope scope(options.name, "PiecewiseConstant", options.location);
  Status s;
  if (values.size() != boundaries.size() + 1) {
    s = InvalidArgument("a PiecewiseConstant of ", boundaries.size(), " boundaries takes ",
                        boundaries.size() + 1, " values, found ", values.size());
  } else if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
    s = InvalidArgument("the boundaries of a PiecewiseConstant must grow");
  }
  if (!s.ok()) CurrentBuilding().Fail(s, options.location);
  const Output now = Const(step);
  // Whole numbers and boundaries are the same ones in double.
  const DType dtype = IsFloating(now.dtype()) ? now.dtype() : DType::kDouble;
  const std::vector<float> rates(values.begin(), values.end());
  const Output passed = ValueAs(now, dtype) > ValueAs(boundaries, dtype);
  return GatherV2(rates, Sum(Cast(passed, DType::kInt32), {0}), 0);
}

Output LinearWarmUp(const Input& learning_rate, const Input& step, const Input& warm_up_steps,
                    const LinearWarmUpOptions& options) {
  const CallScope scope(options.name, "LinearWarmUp", options.location);
  const Output rate = Rate(learning_rate);
  const Output initial = ValueAs(options.initial_learning_rate, rate.dtype());
  const Output progress = Progress(step, warm_up_steps, false, rate.dtype());
  return initial + (rate - initial) * Minimum(progress, 1);
}

}  // namespace tenon
