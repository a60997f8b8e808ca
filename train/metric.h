// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/build/building.h"

namespace tenon {

/// The collection of the references of the metrics' variables, whose values are all sums
/// (tf.GraphKeys.METRIC_VARIABLES).
inline constexpr char kMetricVariables[] = "metric_variables";

/// What adds up over many steps; see metrics.h.
struct Metric {
  Output value;   // of all that has been counted
  Output update;  // counts what this step has, and is the value after that unless said otherwise
};

}  // namespace tenon
