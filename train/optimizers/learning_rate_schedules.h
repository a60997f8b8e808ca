// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/build/building.h"

// Learning rates that change with the step, as scalars of the graph (tf.train.exponential_decay and
// its like). `step` is what counts the steps, a number or a scalar of any numeric dtype, usually
// GlobalStep(). Each number may be a scalar of the graph too. The result has the dtype of the
// learning rate, of numbers float.
//
//   Variable step = GlobalStep();
//   Adam adam(LinearWarmUp(CosineDecay(0.01, step, 10000), step, 500));
//   Node* train = adam.Minimize(loss, {.global_step = step});

namespace tenon {

struct DecayOptions {
  /// Change at every `decay_steps` steps only.
  bool staircase = false;
  std::string name = {};
  std::source_location location = std::source_location::current();
};

/// learning_rate * decay_rate ^ (step / decay_steps) (tf.train.exponential_decay).
Output ExponentialDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                        const Input& decay_rate, const DecayOptions& options = {});

/// learning_rate * exp(-decay_rate * step / decay_steps) (tf.train.natural_exp_decay).
Output NaturalExpDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                       const Input& decay_rate, const DecayOptions& options = {});

/// learning_rate / (1 + decay_rate * step / decay_steps) (tf.train.inverse_time_decay).
Output InverseTimeDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                        const Input& decay_rate, const DecayOptions& options = {});

struct PolynomialDecayOptions {
  Input end_learning_rate = 0.0001;
  Input power = 1.0;
  /// Begin anew from a smaller rate after `decay_steps` steps, instead of staying at the end: over
  /// the first multiple of decay_steps that is not below the step.
  bool cycle = false;
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// From learning_rate to end_learning_rate in `decay_steps` steps:
/// (learning_rate - end_learning_rate) * (1 - step / decay_steps) ^ power + end_learning_rate
/// (tf.train.polynomial_decay).
Output PolynomialDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                       const PolynomialDecayOptions& options = {});

struct CosineDecayOptions {
  /// What the rate ends at, as a part of it.
  Input alpha = 0.0;
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// Half a wave of a cosine from learning_rate to alpha * learning_rate in `decay_steps` steps
/// (tf.train.cosine_decay; Loshchilov and Hutter 2016, "SGDR: Stochastic Gradient Descent with Warm
/// Restarts").
Output CosineDecay(const Input& learning_rate, const Input& step, const Input& decay_steps,
                   const CosineDecayOptions& options = {});

struct CosineDecayRestartsOptions {
  double t_mul = 2.0;  // each period is so many times as long as the one before, at least 1
  double m_mul = 1.0;  // and begins with so many times its rate
  Input alpha = 0.0;   // as CosineDecayOptions has it
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// The same again and again, the first time in `first_decay_steps` steps
/// (tf.train.cosine_decay_restarts).
Output CosineDecayRestarts(const Input& learning_rate, const Input& step,
                           const Input& first_decay_steps,
                           const CosineDecayRestartsOptions& options = {});

/// values[0] up to and at step boundaries[0], values[1] after it up to boundaries[1], and so on,
/// the last value after the last boundary (tf.train.piecewise_constant). InvalidArgument unless
/// there is one value more than boundaries, which must grow. A `step` of floating point is compared
/// as such.
Output PiecewiseConstant(const Input& step, const std::vector<double>& boundaries,
                         const std::vector<double>& values, const OpOptions& options = {});

struct LinearWarmUpOptions {
  Input initial_learning_rate = 0.0;
  std::string name = {};
  std::source_location location = std::source_location::current();
};
/// Another rate, or schedule of the same step, which in the first `warm_up_steps` steps is reached
/// linearly from the initial one: initial + (rate - initial) * min(step / warm_up_steps, 1)
/// (Goyal et al. 2017).
Output LinearWarmUp(const Input& learning_rate, const Input& step, const Input& warm_up_steps,
                    const LinearWarmUpOptions& options = {});

}  // namespace tenon
