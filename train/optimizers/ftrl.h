// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/optimizers/optimizer.h"

namespace tenon {

struct FtrlOptions {
  double learning_rate_power = -0.5;       // at most 0
  double initial_accumulator_value = 0.1;  // at least 0
  double l1_regularization_strength = 0;   // these: at least 0
  double l2_regularization_strength = 0;
  /// A penalty on the size of the variable that the gradient has, but not the accumulator (Ta
  /// 2015).
  double l2_shrinkage_regularization_strength = 0;
  /// The paper's beta, which smooths the first rates.
  double beta = 0;
  std::string name = "Ftrl";
};
/// Follow the regularized leader, for linear models of many features, of which an l1 penalty makes
/// sparse ones (tf.train.FtrlOptimizer; McMahan et al. 2013, "Ad Click Prediction: a View from the
/// Trenches"). Slots: accum and linear ["w/Ftrl" and "w/Ftrl_1"]. Numbers out of their range are a
/// mistake of ApplyGradients.
class Ftrl final : public Optimizer {
 public:
  explicit Ftrl(const Input& learning_rate, const FtrlOptions& options = {})
      : Optimizer(options.name, {{"accum", options.initial_accumulator_value}, {"linear"}}),
        learning_rate_(learning_rate),
        options_(options) {}

 private:
  void Prepare(const std::vector<GradientAndVariable>& gradients) override;
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  const Input learning_rate_;
  const FtrlOptions options_;
};

}  // namespace tenon
