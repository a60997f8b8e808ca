// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>

#include "core/base/status.h"

namespace tenon {

/// A function to make least, of as many numbers as its start has.
struct SmoothProblem {
  /// Gives the value at `x` and writes the gradient.
  std::function<StatusOr<double>(const Eigen::VectorXd& x, Eigen::VectorXd* gradient)> evaluate;
  /// Called after each step, which ends where the last evaluation was. True ends all.
  std::function<bool()> is_done;
  /// This times the absolute values of all numbers from `first` on is added to the value.
  double lasso = 0;
  int64_t first = 0;
};

/// Minimises with limited memory (L-BFGS, Liu and Nocedal 1989; with absolute values OWL-QN, Andrew
/// and Gao 2007) from `x` on, which gets the last step's end. Numbers are best scaled so that the
/// second derivative by each is about the same. The result is whether is_done said so: otherwise no
/// step falls further, as near the minimum rounding does not let one. The errors of `evaluate`.
StatusOr<bool> MinimiseWithLimitedMemory(const SmoothProblem& problem, Eigen::VectorXd* x);

}  // namespace tenon
