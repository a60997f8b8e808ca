// SPDX-License-Identifier: Apache-2.0
#include "train/glm/fisher_scoring.h"

#include <cmath>

#include "core/base/strings.h"

namespace tenon {
namespace {

constexpr int kMostHalvings = 30;

/// The quadratic approximation of the likelihood at some coefficients.
struct Approximation {
  Eigen::VectorXd at;
  double deviance;
  Eigen::VectorXd gradient;
  Eigen::MatrixXd information;
  GlmTotals totals;
};

class Scoring {
 public:
  Scoring(const GlmModel& model, const GlmSumsFunction& pass)
      : model_(model), pass_(pass), layout_(model.design(), GlmPass::kNewton) {}

  StatusOr<Approximation> At(const Eigen::VectorXd& coefficients) {
    std::vector<double> all(model_.design().num_columns());
    const auto& places = model_.places();
    const auto size = static_cast<int64_t>(places.size());
    for (int64_t j = 0; j < size; ++j) {
      all[layout_.first_column(places[j].group) + places[j].level] = coefficients[j];
    }
    TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers, pass_(layout_, all));
    ++passes_;
    const GlmSums sums(layout_, numbers);
    Approximation result = {coefficients, 0, Eigen::VectorXd(size), Eigen::MatrixXd(size, size),
                            TotalsOf(numbers)};
    result.deviance = result.totals.deviance;
    for (int64_t j = 0; j < size; ++j) {
      result.gradient[j] = sums.Gradient(places[j]);
      for (int64_t i = j; i < size; ++i) {
        result.information(i, j) = result.information(j, i) = sums.Product(places[i], places[j]);
      }
    }
    return result;
  }
  int passes() const { return passes_; }

 private:
  const GlmModel& model_;
  const GlmSumsFunction& pass_;
  const GlmSumsLayout layout_;
  int passes_ = 0;
};

bool IsWorse(double deviance, double before) {
  return !(deviance <= before + 1e-8 * (std::abs(before) + 0.1));
}

}  // namespace

StatusOr<FisherScoringFit> FitByFisherScoring(const GlmModel& model, const Eigen::VectorXd& start,
                                              const GlmSumsFunction& pass,
                                              const FisherScoringOptions& options) {
  Scoring scoring(model, pass);
  TENON_ASSIGN_OR_RETURN(Approximation here, scoring.At(start));
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
      options.progress(scoring.passes(), here.deviance, std::sqrt(std::max(decrement, 0.0)),
                       here.at);
    }
    // The deviance falls by the decrement, if the likelihood is as its approximation.
    fit.converged = decrement <= options.tolerance * 1e-4 * (std::abs(here.deviance) + 0.1);
    const bool is_last = fit.converged || scoring.passes() >= options.max_passes;
    Approximation next;
    if (!is_last) {
      Eigen::VectorXd part = step;
      for (int halvings = 0;; ++halvings) {
        TENON_ASSIGN_OR_RETURN(next, scoring.At(here.at + part));
        if (!IsWorse(next.deviance, here.deviance) || halvings == kMostHalvings) break;
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
    fit.passes = scoring.passes();
    return fit;
  }
}

}  // namespace tenon
