// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "core/base/status.h"
#include "ops/glm/glm_sums.h"
#include "train/glm/model/arrow_matrix.h"
#include "train/glm/model/glm_model.h"

namespace tenon {

/// Makes a pass over all rows of a table; see AddGlmSums.
using GlmSumsFunction = std::function<StatusOr<std::vector<double>>(
    const GlmSumsLayout& layout, absl::Span<const double> coefficients)>;

/// The quadratic approximation of a likelihood at some coefficients.
struct LikelihoodApproximation {
  Eigen::VectorXd at;
  double deviance = 0;
  Eigen::VectorXd gradient;
  ArrowMatrix information;
  /// The information of 1 with itself and with each column.
  double information_of_one = 0;
  Eigen::VectorXd information_with_one;
  GlmTotals totals;
};

/// Passes over a table that approximate the likelihood of a model, by its columns.
class LikelihoodPasses {
 public:
  /// The model is settled; both outlive this. `levels` are the columns of one factor, or none, as
  /// the matrices have them.
  LikelihoodPasses(const GlmModel& model, const GlmSumsFunction& pass, ColumnRange levels)
      : model_(model), pass_(pass), levels_(levels), layout_(model.design(), GlmPass::kNewton) {}

  StatusOr<LikelihoodApproximation> At(const Eigen::VectorXd& coefficients);
  /// The approximation of a linear model at other coefficients than `before`, for which products
  /// need not be added up anew: its gradient is of extended precision.
  StatusOr<LikelihoodApproximation> ResidualsAt(const Eigen::VectorXd& coefficients,
                                                LikelihoodApproximation before);
  /// The same as At with another family and without offsets: that of a linear model, of which the
  /// information is the sum of weighted products.
  StatusOr<LikelihoodApproximation> LinearAt(const Eigen::VectorXd& coefficients);
  /// The sum of the products of columns with the squares of scores.
  StatusOr<ArrowMatrix> SquaresAt(const Eigen::VectorXd& coefficients);
  /// How many passes were made.
  int passes() const { return passes_; }

 private:
  /// The numbers of a pass at coefficients of the model.
  StatusOr<std::vector<double>> Pass(const GlmSumsLayout& layout,
                                     const Eigen::VectorXd& coefficients);
  StatusOr<LikelihoodApproximation> With(const GlmSumsLayout& layout,
                                         const Eigen::VectorXd& coefficients);
  ArrowMatrix MatrixOf(const GlmSums& sums) const;

  const GlmModel& model_;
  const GlmSumsFunction& pass_;
  const ColumnRange levels_;
  const GlmSumsLayout layout_;
  int passes_ = 0;
};

/// A step that makes a deviance worse is halved so often at most.
inline constexpr int kMostHalvings = 30;

/// Whether a deviance, or what else becomes less by steps, has risen by more than rounding.
bool IsWorseDeviance(double deviance, double before);

}  // namespace tenon
