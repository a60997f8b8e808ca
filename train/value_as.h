// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/build/building.h"

namespace tenon {

/// `value` in that dtype: a number or a literal as a constant, a tensor cast unless it has it.
/// For functions that take numbers which may be tensors of the graph.
Output ValueAs(const Input& value, DType dtype);

/// The number that `value` is, when the program says it and not the step.
std::optional<double> KnownNumber(const Input& value);

}  // namespace tenon
