// SPDX-License-Identifier: Apache-2.0
#include "train/glm/solvers/coordinate_descent.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace tenon {
namespace {

/// Sweeps over the active columns before they are solved for at once.
constexpr int kSweeps = 20;
/// Below this part of its square a column cannot be told from a sum of others.
constexpr double kLeastPivot = 1e-12;

double SoftThreshold(double value, double threshold) {
  if (value > threshold) return value - threshold;
  if (value < -threshold) return value + threshold;
  return 0;
}

/// The work on one problem. The gradient of the quadratic function is kept up to date with b.
class Descent {
 public:
  Descent(const ElasticNetProblem& problem, Eigen::VectorXd* b) : problem_(problem), b_(*b) {
    Refresh();
  }

  double Residual() const {
    return ElasticNetResidual(gradient_, b_, problem_.ridge, problem_.lasso);
  }

  /// A sweep over all columns, from which the active ones follow.
  void SweepAll() {
    active_.clear();
    for (int64_t j = 0; j < b_.size(); ++j) {
      const double to = Best(gradient_[j], problem_.gram(j, j), b_[j]);
      if (to != b_[j]) {
        gradient_ -= (to - b_[j]) * problem_.gram.col(j);
        b_[j] = to;
      }
      if (b_[j] != 0) active_.push_back(j);
    }
  }

  /// Sweeps over the active columns alone, then, if need be, solves for them.
  void MinimiseActive(double tolerance) {
    if (active_.empty()) return;
    const Eigen::MatrixXd gram = problem_.gram(active_, active_);
    Eigen::VectorXd b = b_(active_), gradient = gradient_(active_);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (int64_t k = 0; k < b.size(); ++k) {
        const double to = Best(gradient[k], gram(k, k), b[k]);
        if (to == b[k]) continue;
        gradient -= (to - b[k]) * gram.col(k);
        b[k] = to;
      }
      if (ElasticNetResidual(gradient, b, problem_.ridge, problem_.lasso) <= tolerance) break;
    }
    b_(active_) = b;
    if (ElasticNetResidual(gradient, b, problem_.ridge, problem_.lasso) > tolerance) {
      SolveForSigns();
    }
    Refresh();
  }

 private:
  void Refresh() {
    gradient_ = problem_.linear;
    gradient_.noalias() -= problem_.gram * b_;
  }

  /// The best value of one coefficient beside the others.
  double Best(double gradient, double square, double now) const {
    const double curvature = square + problem_.ridge;
    // A column of zeros does nothing.
    if (!(curvature > 0)) return 0;
    return SoftThreshold(gradient + square * now, problem_.lasso) / curvature;
  }

  /// While no sign changes the function is quadratic in the coefficients that are not 0. Those that
  /// arrive at 0 first stay there.
  void SolveForSigns() {
    while (true) {
      std::erase_if(active_, [this](int64_t j) { return b_[j] == 0; });
      if (active_.empty()) return;
      const Eigen::VectorXd b = b_(active_);
      Eigen::MatrixXd gram = problem_.gram(active_, active_);
      gram.diagonal().array() += problem_.ridge;
      const Eigen::VectorXd scale = gram.diagonal().cwiseSqrt();
      const Eigen::VectorXd right =
          problem_.linear(active_) - problem_.lasso * b.array().sign().matrix();
      gram = scale.cwiseInverse().asDiagonal() * gram * scale.cwiseInverse().asDiagonal();
      const Eigen::LLT<Eigen::MatrixXd> cholesky(gram);
      if (cholesky.info() != Eigen::Success ||
          cholesky.matrixLLT().diagonal().cwiseAbs2().minCoeff() < kLeastPivot) {
        return;
      }
      const Eigen::VectorXd to =
          cholesky.solve(right.cwiseQuotient(scale)).cwiseQuotient(scale).eval();
      double part = 1;
      int64_t first = -1;
      for (int64_t k = 0; k < b.size() && problem_.lasso > 0; ++k) {
        if (b[k] * to[k] > 0) continue;
        const double until = b[k] / (b[k] - to[k]);
        if (until < part) {
          part = until;
          first = k;
        }
      }
      b_(active_) = b + part * (to - b);
      if (first < 0) return;
      b_[active_[first]] = 0;
    }
  }

  const ElasticNetProblem& problem_;
  Eigen::VectorXd& b_;
  Eigen::VectorXd gradient_;
  std::vector<int64_t> active_;
};

}  // namespace

double ElasticNetResidual(const Eigen::Ref<const Eigen::VectorXd>& gradient,
                          const Eigen::Ref<const Eigen::VectorXd>& b, double ridge, double lasso) {
  double residual = 0;
  for (int64_t j = 0; j < b.size(); ++j) {
    const double own = gradient[j] - ridge * b[j];
    const double left = b[j] > 0   ? std::abs(own - lasso)
                        : b[j] < 0 ? std::abs(own + lasso)
                                   : std::abs(own) - lasso;
    if (std::isnan(left)) return left;
    residual = std::max(residual, left);
  }
  return residual;
}

double MinimiseElasticNet(const ElasticNetProblem& problem, double tolerance, Eigen::VectorXd* b,
                          int max_rounds) {
  Descent descent(problem, b);
  double residual = descent.Residual();
  for (int round = 0; round < max_rounds && residual > tolerance; ++round) {
    descent.SweepAll();
    descent.MinimiseActive(tolerance);
    residual = descent.Residual();
  }
  return residual;
}

}  // namespace tenon
