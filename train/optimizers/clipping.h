// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "train/optimizers/optimizer.h"

// Gradients, and other tensors, made smaller. What a limit is said to be may be a number, or a
// scalar of the graph of the dtype of what it limits. The functions of a Gradient change the rows
// that a sparse one has.

namespace tenon {

/// Elements below the minimum become it, and those above the maximum (tf.clip_by_value). For
/// tensors it is the op ClipByValue (math_ops.h).
template <typename G>
requires std::same_as<G, Gradient> Gradient
ClipByValue(const G& gradient, const Input& clip_value_min, const Input& clip_value_max,
            const OpOptions& options = {.name = "clip_by_value"});

struct ClipByNormOptions {
  /// The axes along which the norm is taken, by default all.
  std::vector<int> axes = {};
  std::string name = "clip_by_norm";
  std::source_location location = std::source_location::current();
};
/// `t` scaled down so that its l2 norm is at most `clip_norm` (tf.clip_by_norm); of its dtype and
/// shape.
Output ClipByNorm(const Output& t, const Input& clip_norm, const ClipByNormOptions& options = {});
/// A sparse gradient, clipped by the norm of the rows as they stand, each repeated row by itself.
Gradient ClipByNorm(const Gradient& gradient, const Input& clip_norm,
                    const ClipByNormOptions& options = {});

/// `t` scaled down so that its l2 norm divided by the number of its elements is at most `clip_norm`
/// (tf.clip_by_average_norm).
Output ClipByAverageNorm(const Output& t, const Input& clip_norm,
                         const OpOptions& options = {.name = "clip_by_average_norm"});

/// The l2 norm of all elements of all gradients together; those that there are none of count
/// nothing (tf.global_norm). InvalidArgument when there is none at all.
Output GlobalNorm(const std::vector<Gradient>& gradients,
                  const OpOptions& options = {.name = "global_norm"});

struct ClipByGlobalNormOptions {
  /// The norm that they are scaled by; by default their GlobalNorm.
  Output use_norm = {};
  std::string name = "clip_by_global_norm";
  std::source_location location = std::source_location::current();
};
struct ClippedGradients {
  std::vector<Gradient> gradients;  // where there was none, there is none
  Output global_norm;               // before
};
/// All gradients scaled by the same number so that their GlobalNorm is at most `clip_norm`
/// (tf.clip_by_global_norm; Pascanu et al. 2012). Where the norm is not finite, all become NaN.
///
///   auto gradients = optimizer.ComputeGradients(loss);
///   Node* train = optimizer.ApplyGradients(ClipByGlobalNorm(gradients, 5.0));
ClippedGradients ClipByGlobalNorm(const std::vector<Gradient>& gradients, const Input& clip_norm,
                                  const ClipByGlobalNormOptions& options = {});
std::vector<GradientAndVariable> ClipByGlobalNorm(std::vector<GradientAndVariable> gradients,
                                                  const Input& clip_norm,
                                                  const ClipByGlobalNormOptions& options = {});

}  // namespace tenon
