// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/optimizers/optimizer.h"

namespace tenon {

/// Plain gradient descent: w -= learning_rate * gradient (tf.train.GradientDescentOptimizer).
class GradientDescent final : public Optimizer {
 public:
  explicit GradientDescent(const Input& learning_rate, std::string name = "GradientDescent")
      : Optimizer(std::move(name)), learning_rate_(learning_rate) {}

 private:
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;
  bool TakesRepeatedRows() const override { return true; }

  const Input learning_rate_;
};

struct MomentumOptions {
  /// Nesterov's rule: w -= learning_rate * (gradient + momentum * accumulator).
  bool use_nesterov = false;
  std::string name = "Momentum";
};
/// accumulator = momentum * accumulator + gradient; w -= learning_rate * accumulator
/// (tf.train.MomentumOptimizer; Sutskever et al. 2013). Rows that a sparse gradient does not have
/// keep their accumulator. Slot: momentum ["w/Momentum"].
class Momentum final : public Optimizer {
 public:
  Momentum(const Input& learning_rate, const Input& momentum, const MomentumOptions& options = {})
      : Optimizer(options.name, {{"momentum"}}),
        learning_rate_(learning_rate),
        momentum_(momentum),
        use_nesterov_(options.use_nesterov) {}

 private:
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  const Input learning_rate_, momentum_;
  const bool use_nesterov_;
};

struct ProximalGradientDescentOptions {
  Input l1_regularization_strength = 0.0;
  Input l2_regularization_strength = 0.0;
  std::string name = "ProximalGradientDescent";
};
/// Gradient descent that shrinks the variable by the penalties instead of following their gradient,
/// so that an l1 penalty makes zeros (tf.train.ProximalGradientDescentOptimizer; Duchi and Singer
/// 2009, "Efficient Learning using Forward-Backward Splitting").
class ProximalGradientDescent final : public Optimizer {
 public:
  explicit ProximalGradientDescent(const Input& learning_rate,
                                   const ProximalGradientDescentOptions& options = {})
      : Optimizer(options.name), learning_rate_(learning_rate), options_(options) {}

 private:
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  const Input learning_rate_;
  const ProximalGradientDescentOptions options_;
};

}  // namespace tenon
