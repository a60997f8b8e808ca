// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "core/base/status.h"

namespace tenon {

/// One example as a step of its dual sees it.
struct DualStep {
  double label = 0, weight = 1;
  double dual = 0;        // before the step
  double prediction = 0;  // by the weights as they are
  double norm = 0;        // the sum of its squared features divided by l2
  double partitions = 1;  // over which the examples are spread

  /// How much the prediction changes with the dual.
  double slope() const { return partitions * weight * norm; }
};

/// A loss of linear models: phi(prediction), convex, and its conjugate, whose argument is -dual.
class DualLoss {
 public:
  /// The loss of that name; InvalidArgument when there is none.
  static StatusOr<std::unique_ptr<DualLoss>> Create(std::string_view name);
  virtual ~DualLoss() = default;

  /// The label as the other functions want it: -1 for 0 where there are two classes.
  /// InvalidArgument for one that the loss has not.
  virtual StatusOr<double> Label(double label) const;
  /// The dual at which the dual objective is largest, or near to it, the other duals being as they
  /// are.
  virtual double BestDual(const DualStep& step) const = 0;
  /// phi of the prediction and its derivative, for an example of weight 1.
  virtual double Primal(double prediction, double label) const = 0;
  virtual double PrimalDerivative(double prediction, double label) const = 0;
  /// The conjugate of phi at -dual; the largest double where it is infinite.
  virtual double Dual(double dual, double label) const = 0;
  /// 1 / L where the derivative of phi is L-Lipschitz; 0 when it is not.
  virtual double smoothness() const = 0;
};

}  // namespace tenon
