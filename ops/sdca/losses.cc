// SPDX-License-Identifier: Apache-2.0
#include "ops/sdca/losses.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::max();
/// Steps of Newton's method, which is quadratic: far more than it needs.
constexpr int kNewtonSteps = 10;

/// x log x, which is 0 at 0.
double TimesLog(double x) { return x > 0 ? x * std::log(x) : 0; }

/// log(1 + exp(-margin)). The dual of a label y is y p, p in [0, 1].
class LogisticLoss final : public DualLoss {
 public:
  /// With p = (1 + tanh x) / 2 the derivative of the objective is 0 where
  /// -2 y x = prediction + slope (p / y - dual).
  double BestDual(const DualStep& s) const override {
    double x = 0;
    for (int i = 0; i < kNewtonSteps; ++i) {
      const double t = std::tanh(x);
      const double value =
          -2 * s.label * x - s.prediction - s.slope() * (0.5 * (1 + t) / s.label - s.dual);
      const double derivative = -2 * s.label - s.slope() * (1 - t * t) * 0.5 / s.label;
      x -= value / derivative;
    }
    return 0.5 * (1 + std::tanh(x)) / s.label;
  }
  double Primal(double prediction, double label) const override {
    const double margin = label * prediction;
    return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
  }
  double PrimalDerivative(double prediction, double label) const override {
    const double margin = label * prediction, e = std::exp(-std::fabs(margin));
    return -label * (margin > 0 ? e : 1.0) / (1 + e);
  }
  double Dual(double dual, double label) const override {
    const double p = dual * label;
    return TimesLog(p) + TimesLog(1 - p);
  }
  double smoothness() const override { return 4; }
};

/// (prediction - label)^2 / 2.
class SquaredLoss final : public DualLoss {
 public:
  StatusOr<double> Label(double label) const override { return label; }
  double BestDual(const DualStep& s) const override {
    return s.dual + (s.label - s.dual - s.prediction) / (1 + s.slope());
  }
  double Primal(double prediction, double label) const override {
    return 0.5 * (prediction - label) * (prediction - label);
  }
  double PrimalDerivative(double prediction, double label) const override {
    return prediction - label;
  }
  double Dual(double dual, double label) const override { return dual * (0.5 * dual - label); }
  double smoothness() const override { return 1; }
};

/// Where y dual must lie.
double Clipped(double dual, double label) {
  const double p = label * dual;
  return p < 0 ? 0.0 : p > 1 ? label : dual;
}

/// max(0, 1 - margin).
class HingeLoss final : public DualLoss {
 public:
  double BestDual(const DualStep& s) const override {
    const double missing = s.label - s.prediction;
    // An example that changes nothing has no slope.
    return missing == 0 ? s.dual : Clipped(s.dual + missing / s.slope(), s.label);
  }
  double Primal(double prediction, double label) const override {
    return std::max(0.0, 1 - label * prediction);
  }
  double PrimalDerivative(double prediction, double label) const override {
    return label * prediction < 1 ? -label : 0;
  }
  double Dual(double dual, double label) const override {
    const double p = dual * label;
    return p < 0 || p > 1 ? kInfinite : -p;
  }
  double smoothness() const override { return 0; }
};

/// The hinge loss with a parabola in the place of its corner.
class SmoothHingeLoss final : public DualLoss {
 public:
  double BestDual(const DualStep& s) const override {
    const double step = (s.label - s.prediction - s.dual) / (s.slope() + 1);
    return Clipped(s.dual + step, s.label);
  }
  double Primal(double prediction, double label) const override {
    const double missing = 1 - label * prediction;
    if (missing <= 0) return 0;
    return missing >= 1 ? missing - 0.5 : 0.5 * missing * missing;
  }
  double PrimalDerivative(double prediction, double label) const override {
    const double margin = label * prediction;
    if (margin >= 1) return 0;
    return margin <= 0 ? -label : prediction - label;
  }
  double Dual(double dual, double label) const override {
    const double p = dual * label;
    return p < 0 || p > 1 ? kInfinite : 0.5 * dual * dual - p;
  }
  double smoothness() const override { return 1; }
};

/// exp(prediction) - label prediction: of counts, whose logarithm is predicted.
class PoissonLoss final : public DualLoss {
 public:
  StatusOr<double> Label(double label) const override {
    if (label >= 0) return label;
    return InvalidArgument(
        "Only non-negative labels can be used with the Poisson log loss. Found example with "
        "label: ",
        label);
  }
  /// With dual = label - exp(x) the derivative of the objective is 0 where
  /// x = prediction + slope (label - dual - exp(x)).
  double BestDual(const DualStep& s) const override {
    const double rest = s.label - s.dual;
    double x = rest > 0 ? std::log(rest) : 0;
    for (int i = 0; i < kNewtonSteps; ++i) {
      const double e = std::exp(x);
      x -= (x - s.prediction - s.slope() * (rest - e)) / (1 + s.slope() * e);
    }
    return s.label - std::exp(x);
  }
  double Primal(double prediction, double label) const override {
    return std::exp(prediction) - prediction * label;
  }
  double PrimalDerivative(double prediction, double label) const override {
    return std::exp(prediction) - label;
  }
  double Dual(double dual, double label) const override {
    const double rest = label - dual;
    return rest < 0 ? kInfinite : TimesLog(rest) - rest;
  }
  double smoothness() const override { return 1; }
};

}  // namespace

StatusOr<std::unique_ptr<DualLoss>> DualLoss::Create(std::string_view name) {
  std::unique_ptr<DualLoss> loss;
  if (name == "logistic_loss") loss = std::make_unique<LogisticLoss>();
  if (name == "squared_loss") loss = std::make_unique<SquaredLoss>();
  if (name == "hinge_loss") loss = std::make_unique<HingeLoss>();
  if (name == "smooth_hinge_loss") loss = std::make_unique<SmoothHingeLoss>();
  if (name == "poisson_loss") loss = std::make_unique<PoissonLoss>();
  if (loss == nullptr) return InvalidArgument("Unsupported loss type: ", name);
  return loss;
}

StatusOr<double> DualLoss::Label(double label) const {
  if (label == 0) return -1.0;
  if (label == 1) return 1.0;
  return InvalidArgument(
      "Only labels of 0.0 or 1.0 are supported right now. Found example with label: ", label);
}

}  // namespace tenon
