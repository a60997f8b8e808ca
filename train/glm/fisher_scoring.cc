// SPDX-License-Identifier: Apache-2.0
#include "train/glm/fisher_scoring.h"

#include <cmath>

#include "core/base/strings.h"

namespace tenon {
namespace {

constexpr int kMostHalvings = 30;

}  // namespace

StatusOr<FisherScoringFit> FitByFisherScoring(const GlmModel& model, double intercept,
                                              const GlmSumsFunction& pass,
                                              const FisherScoringOptions& options) {
  LikelihoodPasses passes(model, pass);
  const auto size = static_cast<int64_t>(model.columns().size());
  Eigen::VectorXd start = Eigen::VectorXd::Zero(size);
  if (size > 0 && model.columns()[0].term < 0) start[0] = intercept;
  TENON_ASSIGN_OR_RETURN(LikelihoodApproximation here, passes.At(start));
  if (here.totals.num_rows == 0) {
    return InvalidArgument("no row is left to fit: ", here.totals.num_missing,
                           " have missing values");
  }
  FisherScoringFit fit;
  fit.start_deviance = here.deviance;
  while (true) {
    const OrderedCholesky cholesky(here.information);
    const Eigen::VectorXd step = cholesky.Solve(here.gradient);
    const double decrement = here.gradient.dot(step);
    if (options.progress) {
      options.progress(passes.passes(), here.deviance, std::sqrt(std::max(decrement, 0.0)));
    }
    // The deviance falls by the decrement, if the likelihood is as its approximation.
    fit.converged = decrement <= options.tolerance * 1e-4 * (std::abs(here.deviance) + 0.1);
    const bool is_last = fit.converged || passes.passes() >= options.max_passes;
    LikelihoodApproximation next;
    if (!is_last) {
      Eigen::VectorXd part = step;
      for (int halvings = 0;; ++halvings) {
        TENON_ASSIGN_OR_RETURN(next, passes.At(here.at + part));
        if (!IsWorseDeviance(next.deviance, here.deviance) || halvings == kMostHalvings) break;
        part /= 2;
      }
      const double change = std::abs(next.deviance - here.deviance);
      fit.converged = change <= options.tolerance * (std::abs(next.deviance) + 0.1);
      here = std::move(next);
      if (!fit.converged) continue;
    }
    // The last step costs no pass; the information does not change by it.
    const OrderedCholesky last(here.information);
    fit.coefficients = here.at;
    if (fit.converged) fit.coefficients += last.Solve(here.gradient);
    for (const int64_t j : last.aliased()) {
      if (fit.coefficients[j] != 0) {
        return Internal("column ", j, " of a design is nearly aliased: the steps do not agree");
      }
      fit.dependences.push_back(last.Dependence(j));
    }
    fit.inverse = last.Inverse();
    fit.aliased = last.aliased();
    fit.deviance = here.deviance;
    fit.passes = passes.passes();
    return fit;
  }
}

}  // namespace tenon
