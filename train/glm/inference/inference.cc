// SPDX-License-Identifier: Apache-2.0
#include "train/glm/inference/inference.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash_map.h"
#include "core/base/status.h"
#include "train/glm/inference/distributions.h"
#include "train/glm/inference/wald_square.h"

namespace tenon {
namespace {

/// The p value of `chi_squared`, a sum over `df` coefficients.
TailProbability JointTest(const GlmResult& result, double chi_squared, int64_t df) {
  const auto count = static_cast<double>(df);
  if (!result.dispersion_is_estimated) return ChiSquaredAbove(chi_squared, count);
  return FisherAbove(chi_squared / count, count, static_cast<double>(result.residual_df));
}

void TestCoefficients(const GlmCovariance& covariance, GlmResult* result) {
  const auto df = static_cast<double>(result->residual_df);
  const bool has_t = result->dispersion_is_estimated;
  const double above = 0.5 + result->level / 2;
  const double quantile = !has_t   ? NormalQuantile(above)
                          : df > 0 ? StudentQuantile(above, df)
                                   : kNotGiven;
  int64_t next = 0;
  for (GlmCoefficient& c : result->coefficients) {
    if (c.status != CoefficientStatus::kOk) continue;
    c.standard_error = std::sqrt(covariance(next, next));
    ++next;
    c.statistic = c.estimate / c.standard_error;
    const TailProbability tail =
        has_t ? StudentTwoSided(c.statistic, df) : NormalTwoSided(c.statistic);
    c.p_value = tail.p;
    c.log10_p = tail.log10;
    c.lower = c.estimate - quantile * c.standard_error;
    c.upper = c.estimate + quantile * c.standard_error;
  }
}

/// Lists the terms, and gives the places of each one's estimates among those that are estimated.
std::vector<std::vector<int64_t>> ListTerms(GlmResult* result) {
  std::vector<std::vector<int64_t>> places;
  StringMap<size_t> found;
  int64_t next = 0;
  result->terms.clear();
  for (const GlmCoefficient& c : result->coefficients) {
    const bool is_estimated = c.status == CoefficientStatus::kOk;
    if (!c.is_intercept()) {
      const auto [at, is_new] = found.try_emplace(c.term, places.size());
      if (is_new) {
        places.emplace_back();
        result->terms.push_back({.label = c.term});
      }
      if (is_estimated) {
        places[at->second].push_back(next);
        ++result->terms[at->second].df;
      }
    }
    if (is_estimated) ++next;
  }
  return places;
}

/// R's summary.lm: how much of the variance around the mean (around 0 without an intercept) the
/// model explains.
void TestModel(GlmResult* result) {
  if (!result->dispersion_is_estimated || result->family != "gaussian") return;
  int64_t intercepts = 0;
  for (const GlmCoefficient& c : result->coefficients) {
    if (c.is_intercept() && c.status == CoefficientStatus::kOk) intercepts = 1;
  }
  const int64_t estimated = result->NumEstimated();
  const auto df = static_cast<double>(result->residual_df);
  const auto df1 = static_cast<double>(estimated - intercepts);
  const double explained = result->null_deviance - result->residual_deviance;
  result->sigma = std::sqrt(result->dispersion);
  result->r2 = explained / result->null_deviance;
  const double total_df = df + static_cast<double>(estimated - intercepts);
  result->adjusted_r2 = df > 0 ? 1 - (1 - result->r2) * (total_df / df) : kNotGiven;
  if (estimated == intercepts || result->residual_df <= 0) return;
  result->f_df1 = estimated - intercepts;
  result->f_df2 = result->residual_df;
  result->f_statistic = explained / df1 / (result->residual_deviance / df);
  const TailProbability tail = FisherAbove(result->f_statistic, df1, df);
  result->f_p_value = tail.p;
  result->f_log10_p = tail.log10;
}

void SetTest(const GlmResult& result, double chi_squared, GlmTerm* term) {
  const TailProbability tail = JointTest(result, chi_squared, term->df);
  term->chi_squared = chi_squared;
  term->p_value = tail.p;
  term->log10_p = tail.log10;
}

}  // namespace

void AddInference(GlmCovariance covariance, GlmResult* result) {
  const std::vector<std::vector<int64_t>> places = ListTerms(result);
  if (!result->has_inference()) return;
  TENON_CHECK(covariance.size() == result->NumEstimated());
  TestCoefficients(covariance, result);
  std::vector<double> estimates;
  for (const GlmCoefficient& c : result->coefficients) {
    if (c.status == CoefficientStatus::kOk) estimates.push_back(c.estimate);
  }
  const auto wald = [&](const std::vector<int64_t>& which) {
    std::vector<double> own;
    for (const int64_t place : which) own.push_back(estimates[place]);
    return WaldSquare(covariance, which, own);
  };
  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i].empty()) SetTest(*result, wald(places[i]), &result->terms[i]);
  }
  TestModel(result);
  if (result->robust && !std::isnan(result->f_statistic)) {
    std::vector<int64_t> all;
    for (const std::vector<int64_t>& term : places) all.insert(all.end(), term.begin(), term.end());
    const auto df = static_cast<double>(result->f_df1);
    result->f_statistic = wald(all) / df;
    const TailProbability tail =
        FisherAbove(result->f_statistic, df, static_cast<double>(result->f_df2));
    result->f_p_value = tail.p;
    result->f_log10_p = tail.log10;
  }
  result->covariance = std::move(covariance);
}

}  // namespace tenon
