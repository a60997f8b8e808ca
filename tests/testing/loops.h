// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/scope.h"

namespace tenon::testing {

/// A while loop in TensorFlow 1's form (Enter, Merge, Switch, NextIteration, Exit): the values after
/// the loop. `device` of the scope applies to all of it.
std::vector<Output> WhileLoop(
    const Scope& s, const std::string& frame, const std::vector<Output>& initial,
    const std::function<Output(const Scope&, const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const Scope&, const std::vector<Output>&)>& body,
    int parallel_iterations = 10);

/// `predicate` ? on_true(value) : on_false(value), of which only one runs.
Output Cond(const Scope& s, Output predicate, Output value,
            const std::function<Output(const Scope&, Output)>& on_true,
            const std::function<Output(const Scope&, Output)>& on_false);

}  // namespace tenon::testing
