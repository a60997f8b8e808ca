// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/quasi_newton.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "train/glm/solvers/limited_memory.h"
#include "train/glm/solvers/penalty_factors.h"

namespace tenon {
namespace {

/// A search that ends early, since rounding hides a fall, begins again without what it remembers so
/// often at most, and only while the residual falls by this much.
constexpr int kMostRestarts = 5;
constexpr double kRestartFall = 0.5;
/// Where a fit is good already, a step that so many passes have not made fall is the last.
constexpr int kMostTries = 3;

/// The likelihood at some coefficients, by column.
struct Slope {
  Eigen::VectorXd at;
  double deviance = 0;
  Eigen::VectorXd gradient;
};

class QuasiNewton {
 public:
  QuasiNewton(const GlmModel& model, const GlmTotals& totals, const GlmPenalty& penalty,
              const GlmSumsFunction& pass, const QuasiNewtonOptions& options)
      : model_(model),
        penalty_(penalty),
        pass_(pass),
        options_(options),
        layout_(model.design(), GlmPass::kGradient),
        num_rows_(totals.num_rows),
        size_(static_cast<int64_t>(model.columns().size())),
        first_(size_ > 0 && model.columns()[0].term < 0 ? 1 : 0) {
    fits_.weight = totals.weight;
    for (const GlmSums::Column& place : model.places()) {
      places_.push_back(layout_.first_column(place.group) + place.level);
    }
  }

  StatusOr<PenalisedFits> Fit(double intercept) {
    TENON_RETURN_IF_ERROR(Start(intercept));
    if (options_.start.size() > 0 && penalty_.path == 0) {
      TENON_ASSIGN_OR_RETURN(here_, At(options_.start));
    }
    if (penalty_.lambda > 0 || penalty_.path > 0) {
      TENON_RETURN_IF_ERROR(FollowPath());
    } else {
      const PenaltyFactors factors = {0, penalty_.ridge, 0};
      TENON_RETURN_IF_ERROR(Refine(factors, options_.tolerance));
      fits_.fit = FitOf(factors);
    }
    fits_.passes = passes_;
    return std::move(fits_);
  }

 private:
  std::vector<double> OfDesign(const Eigen::VectorXd& by_column) const {
    std::vector<double> all(layout_.num_columns());
    for (int64_t j = 0; j < size_; ++j) all[places_[j]] = by_column[j];
    return all;
  }
  /// The numbers of the columns among those that a pass gives for all columns of the design.
  Eigen::VectorXd OfColumns(const double* of_design) const {
    Eigen::VectorXd own(size_);
    for (int64_t j = 0; j < size_; ++j) own[j] = of_design[places_[j]];
    return own;
  }

  StatusOr<Slope> At(const Eigen::VectorXd& coefficients) {
    TENON_ASSIGN_OR_RETURN(const std::vector<double> sums, pass_(layout_, OfDesign(coefficients)));
    ++passes_;
    return Slope{coefficients, TotalsOf(sums).deviance,
                 OfColumns(sums.data() + GlmTotals::kNumbers)};
  }

  /// A pass with the information of columns. `slope`, which may be null, gets the rest.
  StatusOr<ColumnInformation> InformationAt(const GlmDesign& design,
                                            const Eigen::VectorXd& coefficients, Slope* slope) {
    const GlmSumsLayout layout(design, GlmPass::kDiagonal);
    TENON_ASSIGN_OR_RETURN(const std::vector<double> sums, pass_(layout, OfDesign(coefficients)));
    ++passes_;
    const GlmTotals totals = TotalsOf(sums);
    if (totals.num_rows == 0) return InvalidArgument("no row is left to fit");
    const double* const gradient = sums.data() + GlmTotals::kNumbers;
    if (slope != nullptr) *slope = {coefficients, totals.deviance, OfColumns(gradient)};
    return ColumnInformation{GlmSums(layout, sums).WithOne({0}),
                             OfColumns(gradient + layout.num_columns()),
                             OfColumns(gradient + 2 * layout.num_columns())};
  }

  /// The first pass, from which the units of columns follow.
  Status Start(double intercept) {
    Eigen::VectorXd start = Eigen::VectorXd::Zero(size_);
    if (first_ == 1) start[0] = intercept;
    TENON_ASSIGN_OR_RETURN(const ColumnInformation first,
                           InformationAt(model_.design(), start, &here_));
    fits_.start_deviance = fits_.null_deviance = here_.deviance;
    const bool is_gaussian = model_.design().family == GlmFamily::kGaussian;
    if (is_gaussian && here_.deviance > 0) {
      fits_.response_deviation = std::sqrt(here_.deviance / fits_.weight);
    }
    information_ = first.with_itself;
    for (int64_t j = 0; j < size_; ++j) {
      if (information_[j] == 0) fits_.empty.push_back(j);
    }
    // With one predictor for all rows the information is a multiple of that of a linear model.
    if (model_.design().offsets.empty() || is_gaussian) {
      scales_ = PenaltyScales(model_, penalty_.standardised, first);
    } else {
      GlmDesign linear = model_.design();
      linear.family = GlmFamily::kGaussian;
      linear.link = GlmLink::kIdentity;
      linear.offsets.clear();
      TENON_ASSIGN_OR_RETURN(const ColumnInformation of_linear,
                             InformationAt(linear, start, nullptr));
      scales_ = PenaltyScales(model_, penalty_.standardised, of_linear);
    }
    of_one_ = first.of_one;
    return OkStatus();
  }

  /// The units of the search: the second derivative by each is about 1 at the first pass. Absolute
  /// values have to keep the units in which the penalty counts them, as all have the same factor.
  Eigen::VectorXd UnitsOf(const PenaltyFactors& f) const {
    Eigen::VectorXd squares = information_;
    if (f.lasso > 0) {
      squares.tail(size_ - first_) =
          scales_.tail(size_ - first_).cwiseAbs2() * (of_one_ > 0 ? of_one_ : 1);
    } else {
      squares.tail(size_ - first_) += f.ridge * scales_.tail(size_ - first_).cwiseAbs2();
    }
    return squares.unaryExpr([](double square) { return square > 0 ? std::sqrt(square) : 1; });
  }

  double ResidualAt(const Slope& slope, const PenaltyFactors& f) const {
    return PenaltyResidual(f, slope.gradient.cwiseQuotient(scales_), slope.at.cwiseProduct(scales_),
                           first_) /
           (fits_.weight * fits_.response_deviation);
  }

  /// The residual, or where that is larger, the same in the units of the search: rare levels that
  /// the penalty counts as they are have a small part in the first.
  double DistanceAt(const Slope& slope, double residual, const PenaltyFactors& f,
                    const Eigen::VectorXd& units) const {
    if (f.lasso > 0) return residual;
    const Eigen::VectorXd factors = scales_.cwiseQuotient(units).cwiseAbs2() * f.ridge;
    Eigen::VectorXd slopes = slope.gradient.cwiseQuotient(units);
    slopes.tail(size_ - first_) -=
        factors.cwiseProduct(slope.at).cwiseProduct(units).tail(size_ - first_);
    return std::max(residual, slopes.lpNorm<Eigen::Infinity>() / std::sqrt(fits_.weight) /
                                  fits_.response_deviation);
  }

  void Report(double residual) {
    if (!options_.progress || reported_ == passes_) return;
    reported_ = passes_;
    options_.progress(passes_, here_.deviance, residual, here_.at);
  }

  /// Goes from here to the minimum.
  Status Refine(const PenaltyFactors& f, double tolerance) {
    const Eigen::VectorXd units = UnitsOf(f);
    const int last_pass = passes_ + options_.max_passes;
    Eigen::VectorXd x = here_.at.cwiseProduct(units);
    Slope tried;
    SmoothProblem problem;
    problem.first = first_;
    if (f.lasso > 0) problem.lasso = f.lasso / std::sqrt(of_one_ > 0 ? of_one_ : 1);
    double residual = ResidualAt(here_, f);
    double distance = DistanceAt(here_, residual, f, units);
    Report(residual);
    int tries = 0;
    bool gave_up = false;
    problem.evaluate = [&](const Eigen::VectorXd& x,
                           Eigen::VectorXd* gradient) -> StatusOr<double> {
      const Eigen::VectorXd coefficients = x.cwiseQuotient(units);
      // A search begins where the last one ended.
      if (coefficients == here_.at) {
        tried = here_;
      } else if (distance <= options_.good && ++tries > kMostTries) {
        gave_up = true;
        return Cancelled("rounding hides what a step falls by");
      } else {
        TENON_ASSIGN_OR_RETURN(tried, At(coefficients));
      }
      const Eigen::VectorXd standardised = coefficients.cwiseProduct(scales_);
      *gradient = -tried.gradient;
      gradient->tail(size_ - first_) +=
          f.ridge * scales_.cwiseProduct(standardised).tail(size_ - first_);
      *gradient = gradient->cwiseQuotient(units);
      return tried.deviance / 2 + PenaltyAt({0, f.ridge, 0}, standardised, first_);
    };
    problem.is_done = [&] {
      std::swap(here_, tried);
      tries = 0;
      residual = ResidualAt(here_, f);
      distance = DistanceAt(here_, residual, f, units);
      Report(residual);
      return passes_ >= last_pass || distance <= tolerance;
    };
    for (int i = 0; i < kMostRestarts && distance > tolerance && passes_ < last_pass; ++i) {
      // The units round what comes back.
      here_.at = x.cwiseQuotient(units);
      const double before = distance;
      const StatusOr<bool> is_done = MinimiseWithLimitedMemory(problem, &x);
      if (gave_up) break;
      TENON_RETURN_IF_ERROR(is_done.status());
      if (*is_done || distance > kRestartFall * before) break;
    }
    return OkStatus();
  }

  PenalisedFit FitOf(const PenaltyFactors& f) const {
    PenalisedFit fit;
    fit.lambda = f.lambda;
    fit.coefficients = here_.at;
    fit.standardised = here_.at.cwiseProduct(scales_);
    fit.deviance = here_.deviance;
    fit.objective = here_.deviance / 2 + PenaltyAt(f, fit.standardised, first_);
    fit.residual = ResidualAt(here_, f);
    fit.converged = DistanceAt(here_, fit.residual, f, UnitsOf(f)) <= options_.good;
    return fit;
  }

  /// The fits of all lambdas, each from where the last one ended.
  Status FollowPath() {
    const bool has_path = penalty_.path > 0;
    const auto fit = [&](const PenaltyFactors& f, bool is_wanted) -> StatusOr<double> {
      TENON_RETURN_IF_ERROR(
          Refine(f, has_path && !is_wanted ? options_.path_tolerance : options_.tolerance));
      if (has_path) fits_.path.push_back(FitOf(f));
      if (penalty_.lambda == 0 || is_wanted) fits_.fit = FitOf(f);
      return here_.deviance;
    };
    return FollowLambdas(penalty_,
                         {here_.gradient.cwiseQuotient(scales_), fits_.null_deviance, fits_.weight,
                          num_rows_, fits_.response_deviation, model_.design().family},
                         first_, fit);
  }

  const GlmModel& model_;
  const GlmPenalty& penalty_;
  const GlmSumsFunction& pass_;
  const QuasiNewtonOptions& options_;
  const GlmSumsLayout layout_;
  const double num_rows_;
  const int64_t size_, first_;   // the columns, and how many of them no penalty counts
  std::vector<int64_t> places_;  // of the columns, in the design
  Eigen::VectorXd scales_;       // a standardised coefficient is so often one of the design
  Eigen::VectorXd information_;  // of each column, at the first pass
  double of_one_ = 0;
  int passes_ = 0, reported_ = 0;
  Slope here_;
  PenalisedFits fits_;
};

}  // namespace

StatusOr<PenalisedFits> FitByQuasiNewton(const GlmModel& model, double intercept,
                                         const GlmTotals& totals, const GlmPenalty& penalty,
                                         const GlmSumsFunction& pass,
                                         const QuasiNewtonOptions& options) {
  return QuasiNewton(model, totals, penalty, pass, options).Fit(intercept);
}

}  // namespace tenon
