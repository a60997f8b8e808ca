// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/describe_penalty.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/strings.h"
#include "train/glm/text/number_text.h"

namespace tenon {
namespace {

constexpr size_t kShownSeparated = 5;

/// The coefficients that a penalty counts, in words.
std::string CountedText(StandardisedColumns standardised) {
  switch (standardised) {
    case StandardisedColumns::kAll:
      return "each coefficient for one standard deviation (1/n) of its column, levels' too";
    case StandardisedColumns::kNumeric:
      return "coefficients of numbers for one standard deviation (1/n), those of levels as they "
             "are";
    case StandardisedColumns::kNone:
      return "coefficients as they are";
  }
  return "";
}

/// The objective in words, with its factors.
std::string ObjectiveText(const FittedGlm& fitted) {
  const GlmPenalty& penalty = fitted.penalty;
  const std::string counted = StrCat("; b: ", CountedText(penalty.standardised));
  const std::string free = fitted.formula.has_intercept ? "; the intercept is free" : "";
  if (penalty.ridge > 0) {
    return StrCat(absl::StrFormat("deviance / 2 + %.6g / 2 x sum of b²", penalty.ridge), counted,
                  free);
  }
  std::string text = absl::StrFormat("deviance / 2 / %.15g + %.6g x (", fitted.penalised->weight,
                                     fitted.penalised->fit.lambda);
  if (penalty.alpha < 1) {
    StrAppend(&text, absl::StrFormat("%.6g / 2 x sum of b²", 1 - penalty.alpha));
    if (fitted.family == GlmFamily::kGaussian) {
      StrAppend(&text, absl::StrFormat(" / %.6g (the standard deviation of the response, as in "
                                       "glmnet)",
                                       fitted.penalised->response_deviation));
    }
    if (penalty.alpha > 0) StrAppend(&text, " + ");
  }
  if (penalty.alpha > 0) {
    if (penalty.alpha < 1) StrAppend(&text, absl::StrFormat("%.6g x ", penalty.alpha));
    StrAppend(&text, "sum of |b|");
  }
  return StrCat(text, ")", counted, free);
}

std::vector<double> NumbersOf(const Eigen::VectorXd& vector) {
  return {vector.data(), vector.data() + vector.size()};
}

void DescribePath(const FittedGlm& fitted, GlmResult* result) {
  const int64_t first = fitted.formula.has_intercept ? 1 : 0;
  for (const PenalisedFit& fit : fitted.penalised->path) {
    GlmPathPoint point;
    point.lambda = fit.lambda;
    point.nonzero = (fit.standardised.tail(fit.standardised.size() - first).array() != 0).count();
    point.deviance_ratio = 1 - fit.deviance / fitted.penalised->null_deviance;
    point.residual = fit.residual;
    point.coefficients = NumbersOf(fitted.model->ToUnits(fit.coefficients));
    point.standardised = NumbersOf(fit.standardised);
    result->path.push_back(std::move(point));
  }
}

}  // namespace

void WarnOfSeparated(const FittedGlm& fitted, std::string_view why, GlmResult* result) {
  std::vector<std::string> names;
  for (const SeparatedLevel& level : fitted.separated) {
    if (names.size() == kShownSeparated) break;
    names.push_back(StrCat(fitted.formula.variables[level.variable].label, " = ", level.level));
  }
  const auto count = static_cast<int64_t>(fitted.separated.size());
  if (count == 0) return;
  const auto more = count - static_cast<int64_t>(names.size());
  result->warnings.push_back(
      StrCat(Join(names, ", "), more > 0 ? StrCat(" and ", CountText(more), " more levels") : "",
             ": all responses of a level are alike; ", why));
}

Status CheckPenalty(const GlmPenalty& penalty) {
  if (!(penalty.ridge >= 0) || !(penalty.lambda >= 0) || !std::isfinite(penalty.ridge) ||
      !std::isfinite(penalty.lambda) || penalty.path < 0) {
    return InvalidArgument("a penalty is finite and not negative, found ridge ", penalty.ridge,
                           ", lambda ", penalty.lambda, ", a path of ", penalty.path);
  }
  if (!(penalty.alpha >= 0 && penalty.alpha <= 1)) {
    return InvalidArgument("alpha is between 0 (ridge) and 1 (lasso), found ", penalty.alpha);
  }
  if (penalty.ridge > 0 && (penalty.lambda > 0 || penalty.path > 0)) {
    return InvalidArgument(
        "a ridge of its own goes with no lambda and no path: alpha 0 is a ridge");
  }
  return OkStatus();
}

void NamePenalty(const GlmPenalty& penalty, double lambda, GlmResult* result) {
  result->ridge = penalty.ridge;
  if (penalty.ridge == 0 && penalty.alpha == 1) {
    result->lasso = lambda;
  } else if (penalty.ridge == 0) {
    result->alpha = penalty.alpha;
    result->lambda = lambda;
  }
}

void DescribePenalty(const FittedGlm& fitted, GlmResult* result) {
  const PenalisedFits& fits = *fitted.penalised;
  NamePenalty(fitted.penalty, fits.fit.lambda, result);
  const bool has_sizes = result->ridge == 0 && (result->lambda == 0 || result->alpha > 0);
  if (fitted.chosen.method == GlmMethod::kLbfgs) {
    result->method = has_sizes ? "lbfgs (OWL-QN)" : "lbfgs";
  } else {
    result->method = has_sizes ? "newton and coordinate descent" : "newton";
  }
  result->objective = ObjectiveText(fitted);
  result->penalty_residual = fits.fit.residual;
  result->aic = result->bic = kNotGiven;
  result->residual_df = 0;
  if (result->dispersion_is_estimated) {
    result->dispersion = result->residual_deviance / static_cast<double>(result->rows_used);
  }
  DescribePath(fitted, result);
  const auto not_converged = std::count_if(fits.path.begin(), fits.path.end(),
                                           [](const PenalisedFit& fit) { return !fit.converged; });
  if (not_converged > 0) {
    result->warnings.push_back(StrCat(not_converged, " fits of the path have not converged"));
  }
  WarnOfSeparated(fitted, "only the penalty keeps its estimate finite", result);
}

}  // namespace tenon
