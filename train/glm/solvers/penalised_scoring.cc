// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/penalised_scoring.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <utility>

#include "train/glm/solvers/coordinate_descent.h"
#include "train/glm/solvers/penalty_factors.h"

namespace tenon {
namespace {

/// A quadratic approximation is solved so much better than the fit has to be.
constexpr double kDescentPart = 1e-2;
/// Where rounding lets a residual fall no further, this is good enough.
constexpr double kGoodResidual = 1e-7;
/// Newton's steps without absolute values square a residual: from here the next one is rounding.
constexpr double kSquaredTolerance = 1e-9;
class PenalisedScoring {
 public:
  PenalisedScoring(const GlmModel& model, const GlmTotals& totals, const GlmPenalty& penalty,
                   const GlmSumsFunction& pass, const PenalisedScoringOptions& options)
      : model_(model),
        penalty_(penalty),
        options_(options),
        passes_(model, pass, LargestFactor(model.columns())),
        num_rows_(totals.num_rows),
        size_(static_cast<int64_t>(model.columns().size())),
        first_(size_ > 0 && model.columns()[0].term < 0 ? 1 : 0),
        is_gaussian_(model.design().family == GlmFamily::kGaussian),
        scales_(Eigen::VectorXd::Ones(size_)) {
    fits_.weight = totals.weight;
  }

  StatusOr<PenalisedFits> Fit(double intercept) {
    TENON_RETURN_IF_ERROR(Start(intercept));
    if (penalty_.ridge > 0) {
      TENON_RETURN_IF_ERROR(GoOn());
      const PenaltyFactors f = {0, penalty_.ridge, 0};
      TENON_RETURN_IF_ERROR(Refine(f, std::max(options_.tolerance, kSquaredTolerance), false));
      fits_.fit = FitOf(f);
      if (fits_.fit.converged) TakeLastStep(f);
    } else {
      TENON_RETURN_IF_ERROR(FindNull());
      TENON_RETURN_IF_ERROR(GoOn());
      TENON_RETURN_IF_ERROR(FollowPath());
    }
    fits_.passes = passes_.passes();
    return std::move(fits_);
  }

 private:
  /// The first pass, from which the columns' deviations follow.
  Status Start(double intercept) {
    Eigen::VectorXd start = Eigen::VectorXd::Zero(size_);
    if (first_ == 1) start[0] = intercept;
    TENON_ASSIGN_OR_RETURN(here_, passes_.At(start));
    if (here_.totals.num_rows == 0) return InvalidArgument("no row is left to fit");
    fits_.start_deviance = here_.deviance;
    // With one predictor for all rows the information is a multiple of that of a linear model.
    if (model_.design().offsets.empty() || is_gaussian_) {
      SetScales(here_);
    } else {
      TENON_ASSIGN_OR_RETURN(const LikelihoodApproximation linear, passes_.LinearAt(start));
      SetScales(linear);
    }
    if (is_gaussian_) {
      double null = here_.deviance;
      if (first_ == 1) null -= here_.gradient[0] * here_.gradient[0] / here_.information_of_one;
      if (null > 0) fits_.response_deviation = std::sqrt(null / fits_.weight);
    }
    Standardise(&here_);
    Report();
    return OkStatus();
  }

  /// Goes to where the caller wants to begin.
  Status GoOn() {
    if (options_.start.size() == 0 || penalty_.path > 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(here_, At(options_.start.cwiseProduct(scales_)));
    Report();
    return OkStatus();
  }

  void SetScales(const LikelihoodApproximation& at) {
    scales_ =
        PenaltyScales(model_, penalty_.standardised,
                      {at.information_of_one, at.information_with_one, at.information.Diagonal()});
  }

  /// Has the coefficients count as the penalty counts them.
  void Standardise(LikelihoodApproximation* at) const {
    const Eigen::VectorXd inverse = scales_.cwiseInverse();
    at->at = at->at.cwiseProduct(scales_).eval();
    at->gradient = at->gradient.cwiseProduct(inverse).eval();
    at->information.Scale(inverse);
  }

  StatusOr<LikelihoodApproximation> At(const Eigen::VectorXd& standardised) {
    TENON_ASSIGN_OR_RETURN(LikelihoodApproximation at,
                           passes_.At(standardised.cwiseQuotient(scales_)));
    Standardise(&at);
    return at;
  }

  /// Has the approximation here be that of other coefficients, which is exact for a linear model.
  void MoveByGram(const Eigen::VectorXd& to) {
    const Eigen::VectorXd step = to - here_.at;
    const Eigen::VectorXd change = here_.information.Times(step);
    here_.deviance = DevianceAfter(step, change);
    here_.at = to;
    here_.gradient -= change;
  }
  /// The deviance by the approximation, where `change` is that of the gradient.
  double DevianceAfter(const Eigen::VectorXd& step, const Eigen::VectorXd& change) const {
    return here_.deviance - 2 * here_.gradient.dot(step) + step.dot(change);
  }

  double ObjectiveOf(double deviance, const Eigen::VectorXd& at, const PenaltyFactors& f) const {
    return deviance / 2 + PenaltyAt(f, at, first_);
  }
  double ObjectiveAt(const LikelihoodApproximation& at, const PenaltyFactors& f) const {
    return ObjectiveOf(at.deviance, at.at, f);
  }
  /// The objective elsewhere by the approximation here.
  double ObjectiveFromHere(const Eigen::VectorXd& to, const PenaltyFactors& f) const {
    const Eigen::VectorXd step = to - here_.at;
    return ObjectiveOf(DevianceAfter(step, here_.information.Times(step)), to, f);
  }

  double unit() const { return fits_.weight * fits_.response_deviation; }

  double ResidualHere(const PenaltyFactors& f) const {
    return PenaltyResidual(f, here_.gradient, here_.at, first_) / unit();
  }

  void Report() const {
    if (!options_.progress) return;
    options_.progress(passes_.passes(), here_.deviance, ResidualHere(now_),
                      here_.at.cwiseQuotient(scales_));
  }

  /// The minimum of the approximation here and the penalty.
  Eigen::VectorXd MinimumFromHere(const PenaltyFactors& f, double tolerance) const {
    return f.lasso > 0 ? LassoFromHere(f, tolerance) : RidgeFromHere(f);
  }

  /// The intercept is free: the others' problem is what is left when it is taken out.
  Eigen::VectorXd LassoFromHere(const PenaltyFactors& f, double tolerance) const {
    const int64_t rest = size_ - first_;
    const Eigen::MatrixXd information = here_.information.Dense();
    Eigen::MatrixXd gram = information.bottomRightCorner(rest, rest);
    Eigen::VectorXd gradient = here_.gradient.tail(rest), with_one;
    if (first_ == 1) {
      with_one = information.col(0).tail(rest) / information(0, 0);
      gram.noalias() -= information.col(0).tail(rest) * with_one.transpose();
      gradient -= here_.gradient[0] * with_one;
    }
    const Eigen::VectorXd now = here_.at.tail(rest);
    const Eigen::VectorXd linear = gradient + gram * now;
    Eigen::VectorXd to = now;
    MinimiseElasticNet({gram, linear, f.ridge, f.lasso}, tolerance * kDescentPart * unit(), &to);
    Eigen::VectorXd all(size_);
    all.tail(rest) = to;
    if (first_ == 1) {
      all[0] = here_.at[0] + here_.gradient[0] / information(0, 0) - with_one.dot(to - now);
    }
    return all;
  }

  /// The levels of the largest factor are taken out first, which leaves a small problem where there
  /// are thousands of them.
  Eigen::VectorXd RidgeFromHere(const PenaltyFactors& f) const {
    Eigen::VectorXd ridge = Eigen::VectorXd::Constant(size_, f.ridge);
    ridge.head(first_).setZero();
    const ArrowMatrix& gram = here_.information;
    const Eigen::VectorXd right = here_.gradient - ridge.cwiseProduct(here_.at);
    const Eigen::VectorXd of_levels = gram.LevelsOf(right);
    const Eigen::VectorXd root = (gram.own + gram.LevelsOf(ridge)).cwiseSqrt().cwiseInverse();
    const Eigen::MatrixXd scaled = gram.crossed * root.asDiagonal();
    const Eigen::VectorXd scaled_right = root.cwiseProduct(of_levels);
    Eigen::MatrixXd left = gram.others;
    left.diagonal() += gram.OthersOf(ridge);
    left.selfadjointView<Eigen::Lower>().rankUpdate(scaled, -1);
    const Eigen::VectorXd step = left.llt().solve(gram.OthersOf(right) - scaled * scaled_right);
    return here_.at +
           gram.Joined(step, root.cwiseProduct(scaled_right - scaled.transpose() * step));
  }

  /// Goes from here to the minimum; `by_gram` without passes, for a linear model.
  Status Refine(const PenaltyFactors& f, double tolerance, bool by_gram) {
    now_ = f;
    double residual = ResidualHere(f);
    for (int step = 0; residual > tolerance && step < options_.max_passes; ++step) {
      const Eigen::VectorXd to = MinimumFromHere(f, tolerance);
      if (by_gram) {
        MoveByGram(to);
      } else {
        TENON_RETURN_IF_ERROR(MoveTowards(to, f));
      }
      const double last = residual;
      residual = ResidualHere(f);
      if (residual <= kGoodResidual && residual > last / 2) break;
    }
    return OkStatus();
  }

  /// Sets the result to where one step more leads, without a pass. The residual that is said is the
  /// one before it, which is larger.
  void TakeLastStep(const PenaltyFactors& f) {
    MoveByGram(RidgeFromHere(f));
    const double residual = fits_.fit.residual;
    fits_.fit = FitOf(f);
    fits_.fit.residual = residual;
  }

  Status MoveTowards(Eigen::VectorXd to, const PenaltyFactors& f) {
    const double before = ObjectiveAt(here_, f);
    LikelihoodApproximation next;
    for (int halvings = 0;; ++halvings) {
      TENON_ASSIGN_OR_RETURN(next, At(to));
      // Half of the fall that the approximation promises is wanted, as of steps without a penalty.
      const double wanted = (before + ObjectiveFromHere(to, f)) / 2;
      if (!IsWorseDeviance(ObjectiveAt(next, f), wanted) || halvings == kMostHalvings) break;
      to = (here_.at + (to - here_.at) / 2).eval();
    }
    here_ = std::move(next);
    Report();
    return OkStatus();
  }

  PenalisedFit FitOf(const PenaltyFactors& f) const {
    PenalisedFit fit;
    fit.lambda = f.lambda;
    fit.standardised = here_.at;
    fit.coefficients = here_.at.cwiseQuotient(scales_);
    fit.deviance = here_.deviance;
    fit.objective = ObjectiveAt(here_, f);
    fit.residual = ResidualHere(f);
    fit.converged = fit.residual <= kGoodResidual;
    return fit;
  }

  /// The intercept and offsets alone.
  Status FindNull() {
    // Infinity times 0 would be no number.
    constexpr double kHuge = 1e300;
    if (first_ == 1) {
      TENON_RETURN_IF_ERROR(Refine({kHuge, 0, kHuge}, options_.tolerance, is_gaussian_));
    }
    fits_.null_deviance = here_.deviance;
    return OkStatus();
  }

  Status FollowPath() {
    const bool has_path = penalty_.path > 0, by_gram = has_path && is_gaussian_;
    Eigen::VectorXd of_result;
    PenaltyFactors result = {};
    const auto fit = [&](const PenaltyFactors& f, bool is_wanted) -> StatusOr<double> {
      TENON_RETURN_IF_ERROR(
          Refine(f, is_wanted || by_gram ? options_.tolerance : options_.path_tolerance, by_gram));
      if (has_path) fits_.path.push_back(FitOf(f));
      if (penalty_.lambda == 0 || is_wanted) {
        fits_.fit = FitOf(f);
        result = f;
        of_result = here_.at;
      }
      return here_.deviance;
    };
    TENON_RETURN_IF_ERROR(
        FollowLambdas(penalty_,
                      {here_.gradient, fits_.null_deviance, fits_.weight, num_rows_,
                       fits_.response_deviation, model_.design().family},
                      first_, fit));
    if (by_gram) {
      // The sum of products has rounding that the gradient of a pass has not.
      TENON_ASSIGN_OR_RETURN(here_, At(of_result));
      now_ = result;
      Report();
      TENON_RETURN_IF_ERROR(Refine(result, options_.tolerance, false));
      fits_.fit = FitOf(result);
    }
    return OkStatus();
  }

  const GlmModel& model_;
  const GlmPenalty& penalty_;
  const PenalisedScoringOptions& options_;
  LikelihoodPasses passes_;
  const double num_rows_;
  const int64_t size_, first_;  // the columns, and how many of them no penalty counts
  const bool is_gaussian_;
  Eigen::VectorXd scales_;  // a standardised coefficient is so often one of the design
  LikelihoodApproximation here_;
  PenaltyFactors now_ = {};
  PenalisedFits fits_;
};

}  // namespace

StatusOr<PenalisedFits> FitPenalised(const GlmModel& model, double intercept,
                                     const GlmTotals& totals, const GlmPenalty& penalty,
                                     const GlmSumsFunction& pass,
                                     const PenalisedScoringOptions& options) {
  return PenalisedScoring(model, totals, penalty, pass, options).Fit(intercept);
}

}  // namespace tenon
