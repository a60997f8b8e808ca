// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

// Optimizers as formulas on one element, in double and apart from the ops, and steps of the ops to
// compare with them.

namespace tenon::testing {

using Elements = std::vector<double>;  // of a tensor, or one of each variable
using Scalars = std::map<std::string, double>;

struct Optimizer {
  std::string name;
  Elements start;    // the first element of each variable
  Scalars scalars;   // by the names of the inputs
  std::string flag;  // the attribute that changes the formula; empty: none
  void (*step)(Elements& v, const Scalars& s, double g, bool flag);
};

const std::vector<Optimizer>& Optimizers();

Tensor DoubleTensor(const Shape& shape, const Elements& values);

/// A step of an optimizer's op on variables of its own; what the op gets may be changed before it
/// is run. The gradient is of the variables' shape, with zeros in it.
struct OptimizerStep {
  /// `prefix` is Apply, ResourceApply and so on.
  OptimizerStep(const Optimizer& optimizer, const std::string& prefix, const Shape& shape);
  /// For a sparse step: gives a gradient for each of these rows.
  void SetRows(const std::vector<int64_t>& indices);

  bool is_declared() const;
  bool is_sparse() const { return op.find("Sparse") != std::string::npos; }
  /// What the formula makes of the variables in so many steps.
  std::vector<Elements> Expected(int times) const;
  /// Runs the op so often. Afterwards `variables` is what they are, unless one has no value.
  Status Run(int times);

  Optimizer optimizer;
  std::string op;
  Shape shape;
  Scalars scalars;
  bool flag = false;
  DType dtype = DType::kDouble;
  std::vector<Elements> variables;
  std::vector<int64_t> rows;
  Tensor indices;
  Tensor gradient;
  std::vector<size_t> same;   // which variable is given for each; empty: itself
  std::string not_scalar;     // the scalar that is given as a vector
  std::string uninitialized;  // the variable that has no value
};

}  // namespace tenon::testing
