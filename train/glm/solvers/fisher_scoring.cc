// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/fisher_scoring.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/strings.h"

namespace tenon {
namespace {

/// A coefficient that grows without end still changes by this part of itself when a step changes
/// the deviance by no more than that part, and the information about it is this part of what it
/// was.
constexpr double kGrowth = 2e-3, kLeastFall = 1e-6, kVanished = 1e-4;

std::vector<int64_t> MovingColumns(const Eigen::VectorXd& at, const Eigen::VectorXd& step) {
  std::vector<int64_t> moving;
  for (int64_t j = 0; j < step.size(); ++j) {
    if (std::abs(step[j]) > kGrowth * std::abs(at[j])) moving.push_back(j);
  }
  return moving;
}

/// The columns that are eliminated where so many others would make matrices large. Where all are
/// dense, the aliased columns are those that R drops.
constexpr size_t kMostDenseColumns = 1000;
ColumnRange LevelsToEliminate(const std::vector<DesignColumn>& columns) {
  return columns.size() > kMostDenseColumns ? LargestFactor(columns) : ColumnRange();
}

Eigen::VectorXd VarianceInflation(const LikelihoodApproximation& at,
                                  const Eigen::VectorXd& variances, bool has_intercept) {
  Eigen::VectorXd inflation = Eigen::VectorXd::Ones(variances.size());
  const Eigen::VectorXd squares = at.information.Diagonal();
  for (int64_t j = has_intercept ? 1 : 0; j < variances.size(); ++j) {
    const double with_one = has_intercept ? at.information_with_one[j] : 0;
    const double own = squares[j] - with_one * with_one / at.information_of_one;
    inflation[j] = std::max(1.0, variances[j] * own);
  }
  return inflation;
}

/// Sets what follows from the last approximation.
void Finish(const GlmModel& model, const LikelihoodApproximation& last,
            const ArrowCholesky& cholesky, FisherScoringFit* fit) {
  fit->coefficients = last.at;
  fit->deviance = last.deviance;
  fit->inverse = cholesky.Inverse();
  fit->aliased = cholesky.aliased();
  for (const int64_t j : fit->aliased) fit->dependences.push_back(cholesky.Dependence(j));
  const bool has_intercept = !model.columns().empty() && model.columns()[0].term < 0;
  fit->variance_inflation = VarianceInflation(last, fit->inverse.Diagonal(), has_intercept);
  fit->least_left = cholesky.least_left();
  fit->least_left_column = cholesky.least_left_column();
}

/// Sets which of the columns that still move grow without end, from the information where all
/// coefficients but the intercept are 0, for which a pass is made.
Status FindGrowing(const Eigen::VectorXd& null, const std::vector<int64_t>& moving,
                   LikelihoodPasses* passes, FisherScoringFit* fit) {
  if (moving.empty()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const LikelihoodApproximation first, passes->At(null));
  const Eigen::VectorXd at_first = ArrowCholesky(first.information).Inverse().Diagonal();
  const Eigen::VectorXd variances = fit->inverse.Diagonal();
  for (const int64_t j : moving) {
    if (at_first[j] < kVanished * variances[j]) fit->growing.push_back(j);
  }
  return OkStatus();
}

/// The solution of a linear model near `here`, of which the last step costs no pass; after Björck
/// (1967), "Iterative refinement of linear least squares solutions", with the normal equations.
StatusOr<LikelihoodApproximation> Refined(const ArrowCholesky& cholesky,
                                          LikelihoodApproximation here, LikelihoodPasses* passes) {
  constexpr int kMostRefinements = 3;
  constexpr double kSettled = 1e-9;
  for (int refinements = 0;; ++refinements) {
    const Eigen::VectorXd step = cholesky.Solve(here.gradient);
    const Eigen::VectorXd there = here.at + step;
    const bool is_settled = (step.array().abs() <= kSettled * there.array().abs()).all();
    if (is_settled || refinements == kMostRefinements) {
      here.at = there;
      return here;
    }
    TENON_ASSIGN_OR_RETURN(here, passes->ResidualsAt(there, std::move(here)));
  }
}

}  // namespace

StatusOr<FisherScoringFit> FitByFisherScoring(const GlmModel& model, const Eigen::VectorXd& start,
                                              const GlmSumsFunction& pass,
                                              const FisherScoringOptions& options) {
  LikelihoodPasses passes(model, pass, LevelsToEliminate(model.columns()));
  TENON_ASSIGN_OR_RETURN(LikelihoodApproximation here, passes.At(start));
  if (here.totals.num_rows == 0) {
    return InvalidArgument("no row is left to fit: ", here.totals.num_missing,
                           " have missing values");
  }
  Eigen::VectorXd null = Eigen::VectorXd::Zero(start.size());
  if (null.size() > 0 && model.columns()[0].term < 0) null[0] = options.null_intercept;
  FisherScoringFit fit;
  fit.start_deviance = here.deviance;
  const bool is_linear = model.design().family == GlmFamily::kGaussian;
  const auto is_small = [&](double fall) {
    return !is_linear && fall <= kLeastFall * (std::abs(fit.start_deviance) + 0.1);
  };
  LikelihoodApproximation before;
  int64_t rank = start.size();
  std::vector<int64_t> moving;  // by the step to here
  while (true) {
    const ArrowCholesky cholesky(here.information);
    if (cholesky.rank() < rank && !moving.empty()) break;
    rank = cholesky.rank();
    const Eigen::VectorXd step = cholesky.Solve(here.gradient);
    const double decrement = here.gradient.dot(step);
    if (options.progress) {
      options.progress(passes.passes(), here.deviance, std::sqrt(std::max(decrement, 0.0)),
                       here.at);
    }
    // The deviance falls by the decrement, if the likelihood is as its approximation.
    fit.converged = decrement <= options.tolerance * 1e-4 * (std::abs(here.deviance) + 0.1);
    moving.clear();
    if (is_small(decrement)) moving = MovingColumns(here.at, step);
    const bool is_last = fit.converged || passes.passes() >= options.max_passes;
    LikelihoodApproximation next;
    if (!is_last) {
      double part = 1;
      for (int halvings = 0;; ++halvings) {
        const Eigen::VectorXd there = here.at + part * step;
        TENON_ASSIGN_OR_RETURN(next,
                               is_linear ? passes.ResidualsAt(there, here) : passes.At(there));
        // A step that falls by less than half of what the approximation promises may end where
        // means are 0 and 1 and the information about the coefficients has gone.
        const double wanted = here.deviance - decrement * part * (2 - part) / 2;
        if (!IsWorseDeviance(next.deviance, wanted) || halvings == kMostHalvings) break;
        part /= 2;
      }
      const double change = std::abs(next.deviance - here.deviance);
      fit.converged = change <= options.tolerance * (std::abs(next.deviance) + 0.1);
      if (!moving.empty()) before = std::move(here);
      here = std::move(next);
      if (!fit.converged) continue;
    }
    // The last step costs no pass; the information does not change by it.
    const ArrowCholesky last(here.information);
    if (last.rank() < rank && !moving.empty()) break;
    if (fit.converged && is_linear) {
      TENON_ASSIGN_OR_RETURN(here, Refined(last, std::move(here), &passes));
    } else if (fit.converged) {
      here.at += last.Solve(here.gradient);
    }
    for (const int64_t j : last.aliased()) {
      if (here.at[j] != 0) {
        return Internal("column ", j, " of a design is nearly aliased: the steps do not agree");
      }
    }
    Finish(model, here, last, &fit);
    fit.passes = passes.passes();
    TENON_RETURN_IF_ERROR(FindGrowing(null, moving, &passes, &fit));
    return fit;
  }
  // A coefficient that grows has let the information about it vanish.
  fit.converged = true;
  Finish(model, before, ArrowCholesky(before.information), &fit);
  fit.passes = passes.passes();
  TENON_RETURN_IF_ERROR(FindGrowing(null, moving, &passes, &fit));
  return fit;
}

}  // namespace tenon
