// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/limited_memory.h"

#include <lbfgs.h>

#include <algorithm>
#include <limits>
#include <memory>

namespace tenon {
namespace {

/// The pairs of steps and changes of the gradient from which curvature is estimated.
constexpr int kPairs = 10;
constexpr int kMostEvaluations = 20;  // of a step
constexpr int kIsDone = 1;

struct Search {
  const SmoothProblem& problem;
  Eigen::VectorXd x, gradient;
  Status error;
};

// The library knows no errors of a function: one that has failed is no number from then on, until a
// step ends.
double Evaluate(void* search, const double* x, double* gradient, int count, double /*step*/) {
  Search& own = *static_cast<Search*>(search);
  if (own.error.ok()) {
    own.x = Eigen::Map<const Eigen::VectorXd>(x, count);
    const StatusOr<double> value = own.problem.evaluate(own.x, &own.gradient);
    if (value.ok()) {
      std::copy_n(own.gradient.data(), count, gradient);
      return *value;
    }
    own.error = value.status();
  }
  std::fill_n(gradient, count, 0);
  return std::numeric_limits<double>::quiet_NaN();
}

int AfterStep(void* search, const double* /*x*/, const double* /*gradient*/, double /*value*/,
              double /*norm*/, double /*gradient_norm*/, double /*step*/, int /*count*/,
              int /*steps*/, int /*evaluations*/) {
  const Search& own = *static_cast<Search*>(search);
  return !own.error.ok() || own.problem.is_done() ? kIsDone : 0;
}

}  // namespace

StatusOr<bool> MinimiseWithLimitedMemory(const SmoothProblem& problem, Eigen::VectorXd* x) {
  if (x->size() > std::numeric_limits<int>::max() / 2) {
    return InvalidArgument("L-BFGS works on up to ", std::numeric_limits<int>::max() / 2,
                           " numbers, found ", x->size());
  }
  const auto count = static_cast<int>(x->size());
  if (count == 0) return true;
  // The library wants memory that is aligned its own way.
  const std::unique_ptr<double, decltype(&lbfgs_free)> own(lbfgs_malloc(count), &lbfgs_free);
  if (own == nullptr) return ResourceExhausted("there is no memory for ", count, " numbers");
  std::copy_n(x->data(), count, own.get());
  lbfgs_parameter_t parameters;
  lbfgs_parameter_init(&parameters);
  parameters.m = kPairs;
  parameters.epsilon = 0;  // is_done tells the end
  parameters.max_linesearch = kMostEvaluations;
  if (problem.lasso > 0) {
    parameters.orthantwise_c = problem.lasso;
    parameters.orthantwise_start = static_cast<int>(problem.first);
    parameters.linesearch = LBFGS_LINESEARCH_BACKTRACKING;
  }
  Search search = {problem, {}, Eigen::VectorXd(count), OkStatus()};
  const int end = lbfgs(count, own.get(), nullptr, Evaluate, AfterStep, &search, &parameters);
  TENON_RETURN_IF_ERROR(search.error);
  std::copy_n(own.get(), count, x->data());
  if (end == LBFGSERR_OUTOFMEMORY) {
    return ResourceExhausted("there is no memory for ", 2 * kPairs, " vectors of ", count,
                             " numbers");
  }
  return end == kIsDone || end == LBFGS_SUCCESS || end == LBFGS_ALREADY_MINIMIZED;
}

}  // namespace tenon
