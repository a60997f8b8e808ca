// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/optimizers/optimizer.h"

namespace tenon {

/// An optimizer around another that takes one step of it every `steps` steps, with the mean of the
/// gradients of these: large batches in little memory. A global step counts the steps of the other.
///
///   Adam adam(0.001);
///   GradientAccumulation optimizer(adam, 8);
///   Node* train = optimizer.Minimize(loss);
///
/// A sparse gradient stays one, of the rows that any of the steps had. The sums are variables,
/// which checkpoints have: slots accumulator and, for sparse gradients, touched
/// ["w/GradientAccumulation", "w/GradientAccumulation_1"]; and "accumulated_steps" in the scope
/// that was entered, how many there are since the other's last step. The other optimizer's
/// variables are as without it.
class GradientAccumulation final : public Optimizer {
 public:
  /// `optimizer` must outlive this. `steps` below 1 are a mistake of ApplyGradients.
  GradientAccumulation(Optimizer& optimizer, int steps, std::string name = "GradientAccumulation")
      : Optimizer(std::move(name), {{"accumulator"}}), optimizer_(optimizer), steps_(steps) {}

  /// Adds the accumulation, and in a branch the other optimizer's updates. The node runs one step
  /// of this one. Mistakes as of the other's.
  Node* ApplyGradients(const std::vector<GradientAndVariable>& gradients,
                       const ApplyGradientsOptions& options = {}) override;
  /// The variables of this optimizer and of the other.
  std::vector<VariableEntry> variables() const override;

 private:
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;
  std::vector<Output> Finish(std::vector<Output> updates) override;
  void Prepare(const std::vector<GradientAndVariable>& gradients) override;
  bool TakesRepeatedRows() const override { return true; }
  /// The mean of the gradients that were added up.
  Gradient MeanOf(const GradientAndVariable& last) const;
  /// Sets the sums to 0; the nodes that do.
  std::vector<Output> Reset(const GradientAndVariable& mean) const;

  Optimizer& optimizer_;
  const int steps_;
  /// The gradients of the step that is being built.
  std::vector<GradientAndVariable> gradients_;
  Output global_step_;
};

}  // namespace tenon
