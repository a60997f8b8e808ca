// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/build/building.h"

// Branches and loops in C++, in the form that TensorFlow 1 gives them (Switch, Merge and loop
// frames: Yu et al. 2018, "Dynamic Control Flow in Large-Scale Machine Learning"). What is built
// within a branch or a body may use any tensor built before, inside or outside; values from outside
// are brought in. Branches and loops may lie within each other, and have gradients. Variables made
// inside are outside, made once; those of layers have no scope of a branch or loop in their names.

namespace tenon {

/// Builds one branch.
using Branch = std::function<std::vector<Output>()>;

/// What `on_true` gives where `predicate`, a bool scalar, is true, and else what `on_false` gives:
/// as many values of the same dtypes. Only the branch that is taken runs (tf.cond). A node without
/// outputs may stand for a value: the Cond gives a bool then, after it.
///
///   Output safe = Cond(Less(x, 1.0f), [&] { return x; }, [&] { return Sqrt(x); });
std::vector<Output> Cond(const Output& predicate, const Branch& on_true, const Branch& on_false,
                         const OpOptions& options = {.name = "cond"});
/// The same of branches that give one value.
Output Cond(const Output& predicate, const std::function<Output()>& on_true,
            const std::function<Output()>& on_false, const OpOptions& options = {.name = "cond"});

/// The result of the first branch whose predicate is true, and of `otherwise` where none is
/// (tf.case).
Output Case(const std::vector<std::pair<Output, std::function<Output()>>>& branches,
            const std::function<Output()>& otherwise, const OpOptions& options = {.name = "case"});

struct WhileLoopOptions {
  /// At most this many iterations run at once.
  int parallel_iterations = 10;
  /// The loop ends after so many iterations, whatever the condition says; -1: no limit.
  int64_t maximum_iterations = -1;
  /// The shapes that the values keep from iteration to iteration, where they are not those of the
  /// initial values; one for each, or none.
  std::vector<PartialShape> shape_invariants = {};
  std::string name = "while";
  std::source_location location = std::source_location::current();
};

/// Repeats `body`, which makes the next values of the present ones, while `condition` of these is
/// true; the values that it was false for (tf.while_loop). A value keeps its dtype, and its shape
/// unless `shape_invariants` say otherwise.
///
///   auto [i, power] = ...
///   std::vector<Output> end = WhileLoop({0, 1.0f},
///       [](const auto& v) { return v[0] < 10; },
///       [](const auto& v) { return std::vector<Output>{v[0] + 1, v[1] * 2}; });
std::vector<Output> WhileLoop(
    const Inputs& initial, const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const std::vector<Output>&)>& body,
    const WhileLoopOptions& options = {});

}  // namespace tenon
