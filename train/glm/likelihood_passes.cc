// SPDX-License-Identifier: Apache-2.0
#include "train/glm/likelihood_passes.h"

#include <cmath>
#include <cstdint>
#include <utility>

namespace tenon {

StatusOr<LikelihoodApproximation> LikelihoodPasses::With(const GlmSumsLayout& layout,
                                                         const Eigen::VectorXd& coefficients) {
  std::vector<double> all(layout.design().num_columns());
  const auto& places = model_.places();
  const auto size = static_cast<int64_t>(places.size());
  for (int64_t j = 0; j < size; ++j) {
    all[layout.first_column(places[j].group) + places[j].level] = coefficients[j];
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers, pass_(layout, all));
  ++passes_;
  const GlmSums sums(layout, numbers);
  LikelihoodApproximation result;
  result.at = coefficients;
  result.totals = TotalsOf(numbers);
  result.deviance = result.totals.deviance;
  result.gradient.resize(size);
  result.information.setZero(size, size);
  result.information_with_one.resize(size);
  const GlmSums::Column one = {0};
  result.information_of_one = sums.Product(one, one);
  for (int64_t j = 0; j < size; ++j) {
    result.gradient[j] = sums.Gradient(places[j]);
    result.information_with_one[j] = sums.Product(one, places[j]);
    result.information(j, j) = sums.Product(places[j], places[j]);
    int64_t i = j + 1;
    // No row has two levels of the same factors: the products of thousands of levels are 0.
    if (layout.is_coded(places[j].group)) {
      while (i < size && places[i].group == places[j].group) ++i;
    }
    for (; i < size; ++i) {
      result.information(i, j) = result.information(j, i) = sums.Product(places[i], places[j]);
    }
  }
  return result;
}

StatusOr<LikelihoodApproximation> LikelihoodPasses::At(const Eigen::VectorXd& coefficients) {
  return With(layout_, coefficients);
}

StatusOr<LikelihoodApproximation> LikelihoodPasses::LinearAt(const Eigen::VectorXd& coefficients) {
  GlmDesign design = model_.design();
  design.family = GlmFamily::kGaussian;
  design.link = GlmLink::kIdentity;
  design.offsets.clear();
  return With(GlmSumsLayout(design, GlmPass::kNewton), coefficients);
}

StatusOr<Eigen::MatrixXd> LikelihoodPasses::SquaresAt(const Eigen::VectorXd& coefficients) {
  TENON_ASSIGN_OR_RETURN(LikelihoodApproximation squares,
                         With(GlmSumsLayout(model_.design(), GlmPass::kSquares), coefficients));
  return std::move(squares.information);
}

bool IsWorseDeviance(double deviance, double before) {
  return !(deviance <= before + 1e-8 * (std::abs(before) + 0.1));
}

}  // namespace tenon
