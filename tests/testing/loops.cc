// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/loops.h"

namespace tenon::testing {

std::vector<Output> WhileLoop(
    const Scope& s, const std::string& frame, const std::vector<Output>& initial,
    const std::function<Output(const Scope&, const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const Scope&, const std::vector<Output>&)>& body,
    int parallel_iterations) {
  const Scope scope = s.WithPrefix(frame);
  std::vector<Output> merged, exits, inside;
  for (const Output& value : initial) {
    const Output enter = scope.Op("Enter")
                             .Input(value)
                             .Attr("frame_name", frame)
                             .Attr("parallel_iterations", parallel_iterations)
                             .Output();
    // The second input becomes the back edge.
    merged.push_back(scope.Op("Merge").Input(std::vector<Output>{enter, enter}).Outputs()[0]);
  }
  const Output predicate =
      scope.Op("LoopCond").Input(condition(scope, merged)).Output();
  for (const Output& m : merged) {
    const std::vector<Output> sides = scope.Op("Switch").Input(m).Input(predicate).Outputs();
    exits.push_back(scope.Op("Exit").Input(sides[0]).Output());
    inside.push_back(scope.Op("Identity").Input(sides[1]).Output());
  }
  const std::vector<Output> next = body(scope, inside);
  for (size_t i = 0; i < next.size(); ++i) {
    const Output back = scope.Op("NextIteration").Input(next[i]).Output();
    if (!scope.ok()) return {};
    const Status connected = scope.graph().Connect(back, merged[i].node, 1);
    if (!connected.ok()) scope.Fail(connected);
  }
  return exits;
}

Output Cond(const Scope& s, Output predicate, Output value,
            const std::function<Output(const Scope&, Output)>& on_true,
            const std::function<Output(const Scope&, Output)>& on_false) {
  const std::vector<Output> sides = s.Op("Switch").Input(value).Input(predicate).Outputs();
  if (sides.empty()) return Output();
  const Output no = on_false(s, sides[0]);
  const Output yes = on_true(s, sides[1]);
  return s.Op("Merge").Input(std::vector<Output>{no, yes}).Outputs()[0];
}

}  // namespace tenon::testing
