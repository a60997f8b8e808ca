// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/scope.h"

// Graph-building functions for branches and loops that are made of dataflow: a value is dead on the
// branch that is not taken, and Merge takes the live one. Frames, iterations and deadness are the
// executor's; these ops only forward values.

namespace tenon {

struct SwitchOutputs {
  Output output_false;
  Output output_true;
};
/// `data` on the output that `pred` chooses; the other one is dead.
SwitchOutputs Switch(const Scope& s, Output data, Output pred);

struct MergeOutputs {
  Output output;
  Output value_index;  // int32: which input came
};
/// The first input that comes alive.
MergeOutputs Merge(const Scope& s, const std::vector<Output>& inputs);

/// Into the loop `frame_name`; a constant is visible in all of its iterations.
Output Enter(const Scope& s, Output data, std::string_view frame_name, bool is_constant = false,
             int64_t parallel_iterations = 10);
/// Out of the loop.
Output Exit(const Scope& s, Output data);
/// Into the next iteration. The input may be connected later, with Graph::Connect.
Output NextIteration(const Scope& s, Output data);
/// Marks the condition of a loop.
Output LoopCond(const Scope& s, Output input);

}  // namespace tenon
