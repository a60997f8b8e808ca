// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/penalty_factors.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "train/glm/solvers/coordinate_descent.h"

namespace tenon {
namespace {

/// glmnet's sequence of lambdas, and its ends before the last: nearly all is explained, or the next
/// lambda explains no more.
constexpr double kLeastLambda = 1e-4, kLeastLambdaOfFewRows = 1e-2, kLeastAlpha = 1e-3;
constexpr size_t kLeastPath = 5;
constexpr double kMostExplained = 0.999, kLeastGain = 1e-5;
/// A variance below this part of the mean square is that of a constant column.
constexpr double kLeastVariance = 1e-13;

/// The lambdas of a path, from the largest down, with the one that was asked for.
std::vector<double> LambdasOf(const GlmPenalty& penalty, const PathStart& start, int64_t num_free) {
  if (penalty.path == 0) return {penalty.lambda};
  const int64_t rest = start.gradient.size() - num_free;
  const double most = start.gradient.tail(rest).lpNorm<Eigen::Infinity>() / start.weight /
                      std::max(penalty.alpha, kLeastAlpha);
  const double ratio =
      start.num_rows < static_cast<double>(rest) ? kLeastLambdaOfFewRows : kLeastLambda;
  std::vector<double> lambdas;
  for (int64_t k = 0; k < penalty.path; ++k) {
    const double part =
        penalty.path == 1 ? 0 : static_cast<double>(k) / static_cast<double>(penalty.path - 1);
    lambdas.push_back(most * std::pow(ratio, part));
  }
  if (penalty.lambda > 0) {
    const auto place = std::find_if(lambdas.begin(), lambdas.end(),
                                    [&](double own) { return own <= penalty.lambda; });
    if (place == lambdas.end() || *place != penalty.lambda) lambdas.insert(place, penalty.lambda);
  }
  return lambdas;
}

/// Whether a path ends with the last of its fits, whose deviances these are.
bool IsEndOfPath(const std::vector<double>& deviances, const PathStart& start) {
  const size_t count = deviances.size();
  if (count < kLeastPath) return false;
  const double last = 1 - deviances[count - 1] / start.deviance;
  const double before = 1 - deviances[count - 2] / start.deviance;
  const bool is_binomial = start.family == GlmFamily::kBinomial;
  return last > kMostExplained || last - before < kLeastGain * (is_binomial ? 1 : last);
}

/// The factors of a lambda as glmnet counts it.
PenaltyFactors FactorsOf(const GlmPenalty& penalty, double lambda, const PathStart& start) {
  return {lambda, lambda * (1 - penalty.alpha) * start.weight / start.response_deviation,
          lambda * penalty.alpha * start.weight};
}

}  // namespace

Eigen::VectorXd PenaltyScales(const GlmModel& model, StandardisedColumns standardised,
                              const ColumnInformation& information) {
  const auto size = static_cast<int64_t>(model.columns().size());
  Eigen::VectorXd scales = Eigen::VectorXd::Ones(size);
  for (int64_t j = 0; j < size; ++j) {
    const DesignColumn& column = model.columns()[j];
    if (column.term < 0) continue;
    const bool has_number =
        std::any_of(column.levels.begin(), column.levels.end(), [](auto l) { return l < 0; });
    if (standardised == StandardisedColumns::kNone) {
      scales[j] = model.scale(j);
    } else if (standardised == StandardisedColumns::kAll || has_number) {
      const double mean = information.with_one[j] / information.of_one;
      const double square = information.with_itself[j] / information.of_one;
      const double variance = square - mean * mean;
      if (variance > kLeastVariance * square) scales[j] = std::sqrt(variance);
    }
  }
  return scales;
}

double PenaltyAt(const PenaltyFactors& factors, const Eigen::VectorXd& standardised,
                 int64_t num_free) {
  const auto b = standardised.tail(standardised.size() - num_free);
  return factors.ridge / 2 * b.squaredNorm() + factors.lasso * b.lpNorm<1>();
}

double PenaltyResidual(const PenaltyFactors& factors, const Eigen::VectorXd& gradient,
                       const Eigen::VectorXd& standardised, int64_t num_free) {
  const int64_t rest = standardised.size() - num_free;
  const double own = ElasticNetResidual(gradient.tail(rest), standardised.tail(rest), factors.ridge,
                                        factors.lasso);
  return num_free > 0 ? std::max(own, gradient.head(num_free).lpNorm<Eigen::Infinity>()) : own;
}

Status FollowLambdas(
    const GlmPenalty& penalty, const PathStart& start, int64_t num_free,
    absl::FunctionRef<StatusOr<double>(const PenaltyFactors& factors, bool is_wanted)> fit) {
  bool is_at_end = false;
  std::vector<double> deviances;
  for (const double lambda : LambdasOf(penalty, start, num_free)) {
    const bool is_wanted = lambda == penalty.lambda;
    if (is_at_end && !is_wanted) continue;
    TENON_ASSIGN_OR_RETURN(const double deviance,
                           fit(FactorsOf(penalty, lambda, start), is_wanted));
    deviances.push_back(deviance);
    is_at_end = is_at_end || (penalty.path > 0 && IsEndOfPath(deviances, start));
    if (is_at_end && (penalty.lambda == 0 || lambda <= penalty.lambda)) break;
  }
  return OkStatus();
}

}  // namespace tenon
