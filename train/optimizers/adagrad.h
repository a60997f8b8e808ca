// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/optimizers/optimizer.h"

namespace tenon {

struct AdagradOptions {
  double initial_accumulator_value = 0.1;  // above 0
  std::string name = "Adagrad";
};
/// accumulator += gradient^2; w -= learning_rate * gradient / sqrt(accumulator)
/// (tf.train.AdagradOptimizer; Duchi et al. 2011). Slot: accumulator ["w/Adagrad"].
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const Input& learning_rate, const AdagradOptions& options = {})
      : Optimizer(options.name, {{"accumulator", options.initial_accumulator_value}}),
        learning_rate_(learning_rate),
        options_(options) {}

 private:
  void Prepare(const std::vector<GradientAndVariable>& gradients) override;
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  const Input learning_rate_;
  const AdagradOptions options_;
};

struct AdagradDAOptions {
  double initial_gradient_squared_accumulator_value = 0.1;  // above 0
  Input l1_regularization_strength = 0.0;
  Input l2_regularization_strength = 0.0;
  std::string name = "AdagradDA";
};
/// Dual averaging with Adagrad's rates, for sparse linear models: each step solves for the variable
/// anew from the sums of all gradients, so that its value at the start has no influence
/// (tf.train.AdagradDAOptimizer; Duchi et al. 2011). Slots: gradient_accumulator and
/// gradient_squared_accumulator ["w/AdagradDA" and "w/AdagradDA_1"].
class AdagradDA final : public Optimizer {
 public:
  /// `global_step`: a Variable that the steps increment, from 0.
  AdagradDA(const Input& learning_rate, const Output& global_step,
            const AdagradDAOptions& options = {})
      : Optimizer(options.name, {{"gradient_accumulator"},
                                 {"gradient_squared_accumulator",
                                  options.initial_gradient_squared_accumulator_value}}),
        learning_rate_(learning_rate),
        global_step_(global_step),
        options_(options) {}

 private:
  void Prepare(const std::vector<GradientAndVariable>& gradients) override;
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  const Input learning_rate_;
  const Output global_step_;
  const AdagradDAOptions options_;
};

struct ProximalAdagradOptions {
  double initial_accumulator_value = 0.1;  // above 0
  Input l1_regularization_strength = 0.0;
  Input l2_regularization_strength = 0.0;
  std::string name = "ProximalAdagrad";
};
/// Adagrad that shrinks the variable by the penalties, as ProximalGradientDescent does
/// (tf.train.ProximalAdagradOptimizer; Duchi and Singer 2009). Slot: accumulator
/// ["w/ProximalAdagrad"].
class ProximalAdagrad final : public Optimizer {
 public:
  explicit ProximalAdagrad(const Input& learning_rate, const ProximalAdagradOptions& options = {})
      : Optimizer(options.name, {{"accumulator", options.initial_accumulator_value}}),
        learning_rate_(learning_rate),
        options_(options) {}

 private:
  void Prepare(const std::vector<GradientAndVariable>& gradients) override;
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  const Input learning_rate_;
  const ProximalAdagradOptions options_;
};

}  // namespace tenon
