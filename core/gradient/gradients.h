// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "core/gradient/gradient.h"

namespace tenon {

struct GradientsOptions {
  /// The gradients of the ys; ones when empty.
  std::vector<Output> grad_ys = {};
  /// Gives an x that the ys do not depend on an Output without a node, instead of an error.
  bool allow_unconnected = false;
  std::source_location location = std::source_location::current();
};

/// Adds to the graph being built the gradients of sum(ys) with regard to each of `xs`, by reverse
/// mode: each has the shape of its x. A tensor that is used several times gets the sum (AddN).
/// Gradients of what a variable is read from reach the variable itself when it is in `xs`.
///
/// The gradient of a while loop is a loop that goes back through its iterations: what a gradient
/// needs of one, the loop puts on a stack. Loops may lie within loops and branches, and branches
/// within loops.
///
/// The mistake is InvalidArgument when some x has no differentiable path from it to the ys (naming
/// both), when a y is not floating point, or when an op on the path has no gradient function
/// (naming the op).
std::vector<Output> Gradients(const Inputs& ys, const Inputs& xs,
                              const GradientsOptions& options = {});
/// The same, where the gradient of an x that is only gathered from has the rows that were gathered,
/// also in branches and loops, there those of all iterations, and never those of the whole x.
std::vector<Gradient> SparseGradients(const Inputs& ys, const Inputs& xs,
                                      const GradientsOptions& options = {});

/// The `outputs`, which were computed from `inputs` alone, with a gradient of the program's own in
/// the place of that of the ops between (tf.custom_gradient): `gradient` builds the gradients of
/// the inputs of those of the outputs, with which it is called each time that they are wanted. An
/// output whose gradient is not known has zeros; an Output without a node among the results is no
/// gradient.
///
///   Output x = ..., y = Log(1 + Exp(x));
///   y = WithGradient({x}, {y}, [=](const std::vector<Output>& dys) {
///     return std::vector<Output>{dys[0] * Sigmoid(x)};
///   })[0];
std::vector<Output> WithGradient(
    const std::vector<Output>& inputs, const std::vector<Output>& outputs,
    const std::function<std::vector<Output>(const std::vector<Output>& dys)>& gradient,
    const OpOptions& options = {});

}  // namespace tenon
