// SPDX-License-Identifier: Apache-2.0
#include "train/layers/rnn.h"

#include "ops/array/array_ops.h"
#include "ops/array/constants.h"
#include "ops/control_flow/flow.h"
#include "ops/math/math_ops.h"
#include "ops/math/operators.h"
#include "ops/tensor_array/tensor_array_ops.h"

namespace tenon {
namespace {

/// Batch and time exchanged.
Output Exchanged(const Output& x) {
  std::vector<int32_t> order{1, 0};
  for (int i = 2; i < x.shape().rank(); ++i) order.push_back(i);
  return Transpose(x, order);
}

/// The state to begin with for inputs of such a shape; `batch` is the number of examples.
std::vector<Output> InitialState(const RnnCell& cell, int64_t known_batch, const Output& batch,
                                 DType dtype, const RnnOptions& options) {
  if (options.initial_state.empty()) {
    return known_batch >= 0 ? cell.ZeroState(known_batch, dtype) : cell.ZeroState(batch, dtype);
  }
  if (options.initial_state.size() != cell.state_sizes().size()) {
    CurrentBuilding().Fail(
        InvalidArgument("the state of the cell has ", cell.state_sizes().size(),
                        " tensors, initial_state ", options.initial_state.size()),
        options.location);
  }
  return options.initial_state;
}

/// One step, where what is past its end gives zeros and keeps its state: `going` [batch, 1] says of
/// each example whether it is not. Without it all are going.
RnnStep StepWhileGoing(const RnnCell& cell, const Output& x, const std::vector<Output>& state,
                       const Output& going) {
  RnnStep step = cell(x, state);
  if (!going.exists() || step.state.size() != state.size() || !step.output.exists()) return step;
  step.output = SelectV2(going, step.output, Const(0, {.dtype = step.output.dtype()}));
  for (size_t i = 0; i < state.size(); ++i) {
    step.state[i] = SelectV2(going, step.state[i], state[i]);
  }
  return step;
}

std::string ScopeFor(const RnnOptions& options, const char* by_default) {
  return UnusedScope(options.name.empty() ? by_default : options.name);
}

Output Going(const Output& lengths, const Output& time) {
  if (!lengths.exists()) return {};
  return ExpandDims(Cast(lengths, DType::kInt32) > time, 1);
}

/// What DynamicRnn does, for inputs [time, batch, depth], in the scope that is entered.
RnnResult Loop(const RnnCell& cell, const Output& inputs, const RnnOptions& options) {
  const BuildContext& context = CurrentBuilding();
  const PartialShape& shape = inputs.shape();
  const DType dtype = inputs.dtype();
  const RnnResult none{{}, std::vector<Output>(cell.state_sizes().size())};
  cell.Build(KnownSize(inputs, 2, "a recurrent network"), dtype);
  const Output dims = ShapeOf(inputs);
  const Output times = dims[0];
  const std::vector<Output> initial = InitialState(cell, shape.dim(1), dims[1], dtype, options);
  if (!context.graph->error().ok()) return none;
  // At least one step, which tells the array of outputs their shape.
  Output steps = times;
  if (options.sequence_length.exists()) {
    const Output longest = Max(Cast(options.sequence_length, DType::kInt32));
    steps = Minimum(times, Maximum(longest, 1));
  }
  const auto array = [&](const Output& size, const PartialShape& element, const char* name) {
    return TensorArrayV3(size, dtype, element,
                         {.identical_element_shapes = true, .tensor_array_name = name});
  };
  const auto read = array(times, shape.Part(1), "input");
  const auto written = array(steps, {shape.dim(1), cell.output_size()}, "output");
  const Output filled = TensorArrayScatterV3(read.handle, Range(0, times, 1), inputs, read.flow);

  std::vector<Output> values{Const(0, {.dtype = DType::kInt32}), written.flow};
  values.insert(values.end(), initial.begin(), initial.end());
  const auto more = [&](const std::vector<Output>& now) { return now[0] < steps; };
  const auto body = [&](const std::vector<Output>& now) {
    const Output& time = now[0];
    const Output x =
        EnsureShape(TensorArrayReadV3(read.handle, time, filled, dtype), shape.Part(1));
    const std::vector<Output> state(now.begin() + 2, now.end());
    const RnnStep step = StepWhileGoing(cell, x, state, Going(options.sequence_length, time));
    const Output flow = TensorArrayWriteV3(written.handle, time, step.output, now[1]);
    std::vector<Output> next{time + 1, flow};
    next.insert(next.end(), step.state.begin(), step.state.end());
    return next;
  };
  const std::vector<Output> end =
      WhileLoop(values, more, body, {.parallel_iterations = options.parallel_iterations});
  if (!context.graph->error().ok()) return none;
  const PartialShape element{shape.dim(1), cell.output_size()};
  Output outputs = TensorArrayGatherV3(written.handle, Range(0, steps, 1), end[1], dtype, element);
  if (options.sequence_length.exists()) {
    const Output after = Pack({Const(0), times - steps});
    outputs = Pad(outputs, Pack({after, Const({0, 0}), Const({0, 0})}));
  }
  outputs = EnsureShape(outputs, {shape.dim(0), shape.dim(1), cell.output_size()});
  return {outputs, {end.begin() + 2, end.end()}};
}

/// The same for inputs in the order that the options say, which have been checked.
RnnResult LoopOver(const RnnCell& cell, const Output& inputs, const RnnOptions& options) {
  RnnResult result = Loop(cell, options.time_major ? inputs : Exchanged(inputs), options);
  if (!options.time_major && result.outputs.exists()) result.outputs = Exchanged(result.outputs);
  return result;
}

Output Reversed(const Output& x, const RnnOptions& options) {
  const int time = options.time_major ? 0 : 1;
  if (!options.sequence_length.exists()) return ReverseV2(x, {time});
  return ReverseSequence(x, options.sequence_length, time, {.batch_dim = 1 - time});
}

}  // namespace

StaticRnnResult StaticRnn(const RnnCell& cell, const std::vector<Output>& inputs,
                          const RnnOptions& options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const NameScope scope(ScopeFor(options, "rnn"));
  StaticRnnResult result{std::vector<Output>(inputs.size()),
                         std::vector<Output>(cell.state_sizes().size())};
  if (inputs.empty()) {
    context.Fail(InvalidArgument("a recurrent network needs an input"), options.location);
    return result;
  }
  if (!CheckRank(inputs[0], 2, "a static recurrent network")) return result;
  result.state = InitialState(cell, inputs[0].shape().dim(0), ShapeOf(inputs[0])[0],
                              inputs[0].dtype(), options);
  for (size_t i = 0; i < inputs.size() && context.graph->error().ok(); ++i) {
    const Output time = Const(static_cast<int64_t>(i), {.dtype = DType::kInt32});
    RnnStep step =
        StepWhileGoing(cell, inputs[i], result.state, Going(options.sequence_length, time));
    result.outputs[i] = step.output;
    result.state = std::move(step.state);
  }
  return result;
}

RnnResult DynamicRnn(const RnnCell& cell, const Input& input, const RnnOptions& options) {
  const CalledFrom caller(options.location);
  const NameScope scope(ScopeFor(options, "rnn"));
  const Output inputs = Const(input);
  if (!CheckRank(inputs, 3, "a recurrent network")) {
    return {{}, std::vector<Output>(cell.state_sizes().size())};
  }
  return LoopOver(cell, inputs, options);
}

BidirectionalRnnResult BidirectionalDynamicRnn(const RnnCell& forward, const RnnCell& backward,
                                               const Input& input, RnnOptions options) {
  const CalledFrom caller(options.location);
  const BuildContext& context = CurrentBuilding();
  const NameScope scope(ScopeFor(options, "bidirectional_rnn"));
  const Output inputs = Const(input);
  const size_t first = forward.state_sizes().size(), second = backward.state_sizes().size();
  BidirectionalRnnResult result{{{}, std::vector<Output>(first)},
                                {{}, std::vector<Output>(second)}};
  const std::vector<Output> initial = options.initial_state;
  if (!initial.empty() && initial.size() != first + second) {
    context.Fail(InvalidArgument("the states of the cells have ", first + second,
                                 " tensors, initial_state ", initial.size()),
                 options.location);
  }
  if (!CheckRank(inputs, 3, "a recurrent network") || !context.graph->error().ok()) return result;
  const auto part = [&](size_t begin, size_t end) {
    if (initial.empty()) return initial;
    return std::vector<Output>(initial.begin() + begin, initial.begin() + end);
  };
  {
    const NameScope direction("fw");
    options.initial_state = part(0, first);
    result.forward = LoopOver(forward, inputs, options);
  }
  const NameScope direction("bw");
  options.initial_state = part(first, first + second);
  result.backward = LoopOver(backward, Reversed(inputs, options), options);
  if (context.graph->error().ok()) {
    result.backward.outputs = Reversed(result.backward.outputs, options);
  }
  return result;
}

}  // namespace tenon
