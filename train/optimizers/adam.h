// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/optimizers/optimizer.h"

namespace tenon {

struct AdamOptions {
  Input beta1 = 0.9;
  Input beta2 = 0.999;
  /// "epsilon hat" of the paper's section 2.
  Input epsilon = 1e-8;
  std::string name = "Adam";
};
/// Adam (tf.train.AdamOptimizer; Kingma and Ba 2014):
///
///   m = beta1 * m + (1 - beta1) * gradient
///   v = beta2 * v + (1 - beta2) * gradient^2
///   w -= learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon)
///
/// A sparse gradient counts as the dense one: moments decay, and move the variable, in all rows.
/// Slots: m and v ["w/Adam" and "w/Adam_1"]; and beta1_power and beta2_power, beta1^t and beta2^t,
/// which are beside the first variable by name and in the scope that was entered.
class Adam : public Optimizer {
 public:
  explicit Adam(const Input& learning_rate = 0.001, const AdamOptions& options = {})
      : Optimizer(options.name, {{"m"}, {"v"}}), learning_rate_(learning_rate), options_(options) {}

 protected:
  void Prepare(const std::vector<GradientAndVariable>& gradients) override;
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;
  std::vector<Output> Finish(std::vector<Output> updates) override;

  const Input learning_rate_;

 private:
  Node* ApplyRows(const IndexedSlices& gradient, const VariableEntry& variable);

  const AdamOptions options_;
};

struct AdamWOptions {
  Input weight_decay = 0.004;
  /// Variables that do not decay, such as biases.
  std::vector<Output> without_decay = {};
  AdamOptions adam = {.name = "AdamW"};
};
/// Adam with decoupled weight decay: before Adam's step, of which it is no part,
/// w -= learning_rate * weight_decay * w, in all rows (tf.keras.optimizers.AdamW; Loshchilov and
/// Hutter 2019, "Decoupled Weight Decay Regularization"). Slots: m and v ["w/AdamW" and
/// "w/AdamW_1"], and Adam's beta1_power and beta2_power.
class AdamW final : public Adam {
 public:
  explicit AdamW(const Input& learning_rate = 0.001, const AdamWOptions& options = {})
      : Adam(learning_rate, options.adam), options_(options) {}

 private:
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  const AdamWOptions options_;
};

}  // namespace tenon
