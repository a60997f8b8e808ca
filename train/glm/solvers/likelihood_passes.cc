// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/likelihood_passes.h"

#include <cmath>
#include <cstdint>
#include <utility>

namespace tenon {

StatusOr<std::vector<double>> LikelihoodPasses::Pass(const GlmSumsLayout& layout,
                                                     const Eigen::VectorXd& coefficients) {
  std::vector<double> all(layout.design().num_columns());
  const auto& places = model_.places();
  for (size_t j = 0; j < places.size(); ++j) {
    all[layout.first_column(places[j].group) + places[j].level] =
        coefficients[static_cast<int64_t>(j)];
  }
  ++passes_;
  return pass_(layout, all);
}

StatusOr<LikelihoodApproximation> LikelihoodPasses::With(const GlmSumsLayout& layout,
                                                         const Eigen::VectorXd& coefficients) {
  TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers, Pass(layout, coefficients));
  const auto& places = model_.places();
  const auto size = static_cast<int64_t>(places.size());
  const GlmSums sums(layout, numbers);
  LikelihoodApproximation result;
  result.at = coefficients;
  result.totals = TotalsOf(numbers);
  result.deviance = result.totals.deviance;
  result.gradient.resize(size);
  result.information_with_one.resize(size);
  const GlmSums::Column one = {0};
  result.information_of_one = sums.Product(one, one);
  for (int64_t j = 0; j < size; ++j) {
    result.gradient[j] = sums.Gradient(places[j]);
    result.information_with_one[j] = sums.Product(one, places[j]);
  }
  result.information = MatrixOf(sums);
  return result;
}

ArrowMatrix LikelihoodPasses::MatrixOf(const GlmSums& sums) const {
  const auto& places = model_.places();
  ArrowMatrix matrix = ArrowMatrix::Of(static_cast<int64_t>(places.size()), levels_);
  const int64_t num_others = matrix.num_others();
  std::vector<GlmSums::Column> others;
  for (int64_t i = 0; i < num_others; ++i) others.push_back(places[matrix.ColumnOf(i)]);
  for (int64_t j = 0; j < num_others; ++j) {
    for (int64_t i = j; i < num_others; ++i) {
      matrix.others(i, j) = matrix.others(j, i) = sums.Product(others[i], others[j]);
    }
  }
  if (levels_.count == 0) return matrix;
  const int64_t group = places[levels_.begin].group;
  std::vector<GlmSums::Products> products;
  std::vector<int64_t> of_same_factor;
  for (int64_t i = 0; i < num_others; ++i) {
    const int64_t own = others[i].group;
    const bool is_same =
        layout_.is_coded(own) && layout_.SameFactors(layout_.place(own), layout_.place(group));
    if (is_same) of_same_factor.push_back(i);
    // What stands here for these is overwritten.
    products.push_back(sums.ProductsWith(is_same ? GlmSums::Column{0} : others[i], group));
  }
  for (int64_t l = 0; l < levels_.count; ++l) {
    const GlmSums::Column& level = places[levels_.begin + l];
    matrix.own[l] = sums.Product(level, level);
    double* const column = matrix.crossed.col(l).data();
    for (int64_t i = 0; i < num_others; ++i) {
      column[i] = products[i].first[level.level * products[i].stride];
    }
    for (const int64_t i : of_same_factor) column[i] = sums.Product(others[i], level);
  }
  return matrix;
}

StatusOr<LikelihoodApproximation> LikelihoodPasses::At(const Eigen::VectorXd& coefficients) {
  return With(layout_, coefficients);
}

StatusOr<LikelihoodApproximation> LikelihoodPasses::ResidualsAt(const Eigen::VectorXd& coefficients,
                                                                LikelihoodApproximation before) {
  const GlmSumsLayout layout(model_.design(), GlmPass::kResidual);
  TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers, Pass(layout, coefficients));
  const GlmSums sums(layout, numbers);
  before.at = coefficients;
  before.totals = TotalsOf(numbers);
  before.deviance = before.totals.deviance;
  const auto& places = model_.places();
  for (size_t j = 0; j < places.size(); ++j) {
    before.gradient[static_cast<int64_t>(j)] = sums.Gradient(places[j]);
  }
  return before;
}

StatusOr<LikelihoodApproximation> LikelihoodPasses::LinearAt(const Eigen::VectorXd& coefficients) {
  GlmDesign design = model_.design();
  design.family = GlmFamily::kGaussian;
  design.link = GlmLink::kIdentity;
  design.offsets.clear();
  return With(GlmSumsLayout(design, GlmPass::kNewton), coefficients);
}

StatusOr<ArrowMatrix> LikelihoodPasses::SquaresAt(const Eigen::VectorXd& coefficients) {
  TENON_ASSIGN_OR_RETURN(LikelihoodApproximation squares,
                         With(GlmSumsLayout(model_.design(), GlmPass::kSquares), coefficients));
  return std::move(squares.information);
}

bool IsWorseDeviance(double deviance, double before) {
  return !(deviance <= before + 1e-8 * (std::abs(before) + 0.1));
}

}  // namespace tenon
