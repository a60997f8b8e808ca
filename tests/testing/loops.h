// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/building.h"

namespace tenon::testing {

/// A while loop in TensorFlow 1's form (Enter, Merge, Switch, NextIteration, Exit): the values
/// after the loop. What is entered where it is called applies to all of it; `condition` and `body`
/// are called inside the loop's name scope, with the loop's values.
std::vector<Output> WhileLoop(
    const std::string& frame, const std::vector<Output>& initial,
    const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const std::vector<Output>&)>& body,
    int parallel_iterations = 10);

/// `predicate` ? on_true(value) : on_false(value), of which only one runs.
Output Cond(Output predicate, Output value, const std::function<Output(Output)>& on_true,
            const std::function<Output(Output)>& on_false);

}  // namespace tenon::testing
