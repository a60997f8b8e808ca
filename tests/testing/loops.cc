// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/loops.h"

#include "ops/array/array_basic_ops.h"
#include "ops/control_flow/control_flow_ops.h"

namespace tenon::testing {

std::vector<Output> WhileLoop(
    const std::string& frame, const std::vector<Output>& initial,
    const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const std::vector<Output>&)>& body,
    int parallel_iterations) {
  const NameScope scope(frame);
  std::vector<Output> merged, exits, inside;
  for (const Output& value : initial) {
    const Output enter = Enter(value, frame, {.parallel_iterations = parallel_iterations});
    // The second input becomes the back edge.
    merged.push_back(Merge({enter, enter}).output);
  }
  const Output predicate = LoopCond(condition(merged));
  for (const Output& m : merged) {
    const auto [leaves, stays] = Switch(m, predicate);
    exits.push_back(Exit(leaves));
    inside.push_back(Identity(stays));
  }
  const std::vector<Output> next = body(inside);
  const BuildContext& context = CurrentBuilding();
  for (size_t i = 0; i < next.size(); ++i) {
    const Output back = NextIteration(next[i]);
    if (!context.graph->error().ok()) return {};
    const Status connected = context.graph->Connect(back, merged[i].node, 1);
    if (!connected.ok()) context.graph->Fail(connected);
  }
  return exits;
}

Output Cond(Output predicate, Output value, const std::function<Output(Output)>& on_true,
            const std::function<Output(Output)>& on_false) {
  const auto [when_false, when_true] = Switch(value, predicate);
  const Output no = on_false(when_false);
  const Output yes = on_true(when_true);
  return Merge({no, yes}).output;
}

}  // namespace tenon::testing
