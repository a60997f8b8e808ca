// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "train/optimizers/optimizer.h"

namespace tenon {

struct DistributedOptimizerOptions {
  /// Gradients of one dtype travel together, up to so many bytes: one message costs less than
  /// several, and the first ones can be on their way while others are computed. Larger ones travel
  /// alone.
  int64_t fusion_bytes = 16 * 1024 * 1024;
  /// kHalf or kBFloat16: gradients of float and double are rounded to it for the way, which takes
  /// half the time or less. kInvalid: they are not.
  DType wire = DType::kInvalid;
};

/// Trains in step with the other ranks (Horovod's DistributedOptimizer; Sergeev and Del Balso
/// 2018): the gradients are the mean of those that all ranks have computed, each of its own data,
/// and each rank applies them to its own variables, which so stay the same everywhere.
///
///   TENON_ASSIGN_OR_RETURN(auto ranks, JoinRanks(server));
///   Adam adam(0.001 * ranks->size());
///   DistributedOptimizer optimizer(adam);
///   Node* train = optimizer.Minimize(loss, {.global_step = GlobalStep()});
///   ... MonitoredTrainingSession::Start({.checkpoint_dir = ranks->rank() == 0 ? dir : "",
///                                        .hooks = {KeepRanksInStep(), ...},
///                                        .communicator = ranks.get()}) ...
///
/// GradientAccumulation around it sends a message only every so many batches. Sparse gradients stay
/// so: the rows of all ranks, one after the other. The sums of floats on N
/// ranks are those of one process but for the order of additions.
class DistributedOptimizer final : public Optimizer {
 public:
  /// `optimizer` applies the means; it must outlive this.
  explicit DistributedOptimizer(Optimizer& optimizer,
                                const DistributedOptimizerOptions& options = {});

  /// The means over all ranks. The mistake is InvalidArgument for another `wire`.
  std::vector<GradientAndVariable> Combine(std::vector<GradientAndVariable> gradients) override;
  Node* ApplyGradients(const std::vector<GradientAndVariable>& gradients,
                       const ApplyGradientsOptions& options = {}) override {
    return optimizer_.ApplyGradients(gradients, options);
  }
  std::vector<VariableEntry> variables() const override { return optimizer_.variables(); }

 private:
  Node* Apply(const Gradient& gradient, const VariableEntry& variable) override;

  Optimizer& optimizer_;
  const DistributedOptimizerOptions options_;
};

/// The means over all ranks of gradients, in their order, as DistributedOptimizer takes them.
std::vector<Gradient> MeanOverRanks(const std::vector<Gradient>& gradients,
                                    const DistributedOptimizerOptions& options = {});

/// The means over parts of a batch, the same number on each rank, in an order of their own: those
/// of rank 0 come first. The same parts give the same bits on any number of ranks, one too, where
/// MeanOverRanks adds up in another order. A rank receives the gradients of all parts, so that
/// messages are as many times larger.
///
///   std::vector<std::vector<GradientAndVariable>> parts;
///   for (const Output& loss : losses) parts.push_back(adam.ComputeGradients(loss));
///   Node* train = adam.ApplyGradients(MeanOverParts(parts), {.global_step = GlobalStep()});
///
/// `parts` has a list for each part of this rank, each with the same variables in the same order. A
/// gradient is left out where no part has one; the mistake is InvalidArgument where some have it,
/// or have a sparse one, and others do not.
std::vector<GradientAndVariable> MeanOverParts(
    const std::vector<std::vector<GradientAndVariable>>& parts);

}  // namespace tenon
