// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/metric.h"
#include "train/variables.h"

// What metrics are made of.

namespace tenon::metrics {

/// What a metric is given, without last dimensions of 1 that only one of them has.
struct Aligned {
  Output labels, predictions;
  Output weights;  // in float; without a node when there are none
};
Aligned Align(const Output& labels, const Output& predictions, const Input& weights,
              const std::source_location& at);

/// A local variable of zeros.
Variable CountVariable(std::string_view name, const Shape& shape, DType dtype = DType::kFloat);

/// Counts in a variable: its value, and the value after `added`, of its shape and dtype, is added.
Metric Counted(std::string_view name, const Shape& shape, const Output& added);

/// What `compute` makes of the parts: of what they are, called "value", and of what they become,
/// called "update_op". The value waits for nothing that was entered.
Metric MetricOf(const std::vector<Metric>& parts,
                const std::function<Output(const std::vector<Output>& parts,
                                           const std::string& name)>& compute);

}  // namespace tenon::metrics
