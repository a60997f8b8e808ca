// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/scope.h"

namespace tenon {

/// Adds to the graph of `scope` the gradients of sum(ys) with regard to each of `xs`, by reverse
/// mode: (*grads)[i] has the shape of xs[i]. `grad_ys` are the gradients of the ys, or empty for
/// ones. A tensor that is used several times gets the sum (AddN). Gradients of what a variable is
/// read from reach the variable itself when it is in `xs`.
///
/// InvalidArgument when some x has no differentiable path from it to the ys (naming both), when a
/// y is not floating point, or when an op on the path has no gradient function (naming the op).
/// With `allow_unconnected` an x without a path gets an empty Output instead.
Status AddGradients(const Scope& scope, const std::vector<Output>& ys,
                    const std::vector<Output>& xs, const std::vector<Output>& grad_ys,
                    std::vector<Output>* grads, bool allow_unconnected = false);

}  // namespace tenon
