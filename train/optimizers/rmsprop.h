// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/optimizers/optimizer.h"

namespace tenon {

struct RMSPropOptions {
  Input decay = 0.9;
  Input momentum = 0.0;
  Input epsilon = 1e-10;
  /// Divide by an estimate of the variance of the gradient, not of its second moment.
  bool centered = false;
  std::string name = "RMSProp";
};
/// Divides the gradient by a running root of its mean square (tf.train.RMSPropOptimizer; Tieleman
/// and Hinton 2012; centered: Graves 2013):
///
///   rms = decay * rms + (1 - decay) * gradient^2
///   momentum = momentum * momentum + learning_rate * gradient / sqrt(rms + epsilon)
///   w -= momentum
///
/// Rows that a sparse gradient does not have keep theirs. Slots: rms and momentum ["w/RMSProp" and
/// "w/RMSProp_1"]; with `centered` rms, mg and momentum.
class RMSProp final : public Optimizer {
 public:
  explicit RMSProp(const Input& learning_rate, const RMSPropOptions& options = {});

 private:
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  const Input learning_rate_;
  const RMSPropOptions options_;
};

struct AdadeltaOptions {
  Input rho = 0.95;
  Input epsilon = 1e-8;
  std::string name = "Adadelta";
};
/// Steps as large as the last ones, by running means of the squares of gradients and of updates
/// (tf.train.AdadeltaOptimizer; Zeiler 2012). Slots: accum and accum_update ["w/Adadelta" and
/// "w/Adadelta_1"].
class Adadelta final : public Optimizer {
 public:
  explicit Adadelta(const Input& learning_rate = 0.001, const AdadeltaOptions& options = {})
      : Optimizer(options.name, {{"accum"}, {"accum_update"}}),
        learning_rate_(learning_rate),
        options_(options) {}

 private:
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  const Input learning_rate_;
  const AdadeltaOptions options_;
};

}  // namespace tenon
