// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/null_intercept.h"

#include <cmath>
#include <limits>
#include <vector>

namespace tenon {
namespace {

constexpr int kMostNullPasses = 100;
constexpr double kNullTolerance = 1e-12;
/// The longest first step; each one may be twice as long as that before it.
constexpr double kFirstReach = 4;

}  // namespace

StatusOr<double> FindNullIntercept(const GlmModel& model, double start,
                                   const GlmSumsFunction& pass) {
  const GlmSumsLayout layout(model.design(), GlmPass::kDiagonal);
  std::vector<double> coefficients(model.design().num_columns());
  double low = -std::numeric_limits<double>::infinity(), high = -low;
  double at = start, reach = kFirstReach;
  for (int i = 0; i < kMostNullPasses; ++i) {
    coefficients[0] = at;
    TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers, pass(layout, coefficients));
    const GlmSums sums(layout, numbers);
    const double gradient = sums.Gradient({0});
    double step = gradient / sums.WithItself({0});
    if (gradient == 0 || std::abs(step) <= kNullTolerance * (1 + std::abs(at))) return at + step;
    // Where offsets are large the information vanishes, and a step leads anywhere.
    if (!(std::abs(step) <= reach)) step = std::copysign(reach, gradient);
    (gradient > 0 ? low : high) = at;
    const double next = at + step;
    at = next > low && next < high ? next : low + (high - low) / 2;
    reach *= 2;
  }
  return at;
}

}  // namespace tenon
